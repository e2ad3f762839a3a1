"""How text is painted and progress is told."""
