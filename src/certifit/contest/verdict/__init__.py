"""The verdict: the referee, the standing, the diagnostics and the suspicions."""
