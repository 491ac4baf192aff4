"""Models: a hypothesis space, an objective, and the solver that fits it."""
