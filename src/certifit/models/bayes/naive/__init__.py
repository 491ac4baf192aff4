"""Naive Bayes: columns independent given the class, each with a factor of its own kind."""
