"""Models whose outputs are sequences or trees of labels."""
