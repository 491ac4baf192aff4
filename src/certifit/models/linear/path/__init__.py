"""Fits for all alphas at once, and the models that choose among them."""
