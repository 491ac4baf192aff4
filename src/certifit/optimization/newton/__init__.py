"""Newton's method and its relatives."""
