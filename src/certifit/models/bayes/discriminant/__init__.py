"""Discriminants: a Gaussian for each class, of one covariance, of one each, or of one variance."""
