"""Who owned what when, as data; and its renderers."""
