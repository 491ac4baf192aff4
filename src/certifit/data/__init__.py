"""The gate: arrays and frames in, targets, equal rows."""
