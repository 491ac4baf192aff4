"""The best subset of the columns, for least squares and for generalized linear models."""
