"""A table with a target: reading, kinds of columns, encoding."""
