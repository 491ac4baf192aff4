"""Learning and inference on chains and trees of labels."""
