"""A contest of taggers: annotated text in, a leaderboard, a report page and a model file out."""
