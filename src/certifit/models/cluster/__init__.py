"""Clusters: groups of rows that belong together, with a bound on how much better any other grouping could be."""
