"""Local models: a fit of its own at every query."""
