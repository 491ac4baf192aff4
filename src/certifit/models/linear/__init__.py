"""Linear regressions: any loss, any penalty, paths, inference."""
