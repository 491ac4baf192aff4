"""How sequences of tokens become rows of features."""
