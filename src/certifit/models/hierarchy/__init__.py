"""Hierarchies of clusters: trees of merges or splits, cut where one likes."""
