"""The search for settings within limits, and the blend."""
