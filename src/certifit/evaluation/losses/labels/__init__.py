"""Losses of labels, of one score or of one for each class: one file each."""
