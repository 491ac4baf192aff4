"""A table and no target: what its columns are, how they hang together, and whether its rows fall into groups."""
