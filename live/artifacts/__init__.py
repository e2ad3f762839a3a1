"""Releases and programs from the registries: Maven, PyPI, Go, npm, and our Java compiled."""
