"""Tables: frames, categories, the encoder, bins."""
