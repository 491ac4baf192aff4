"""Trees of few levels that are the best of all: branch and bound over every threshold."""
