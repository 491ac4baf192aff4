"""Decisions: costs, thresholds, Bayes actions, calibration."""
