"""Models of distributions: naive Bayes, discriminants, densities, conjugate pairs, Bayesian regression."""
