"""Placeholder, replaced by the plugin itself."""
