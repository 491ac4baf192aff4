"""Many classes from two: one against the rest, pairs, codes."""
