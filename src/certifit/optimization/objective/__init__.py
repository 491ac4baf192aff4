"""The objective, its units, its dual bound, and which solver minimizes it."""
