"""Reports for CI systems."""
