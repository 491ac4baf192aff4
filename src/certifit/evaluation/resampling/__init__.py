"""Resampling: what a learner is worth when the same rows must train and judge."""
