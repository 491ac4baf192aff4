"""Risk on unseen rows, its intervals, comparisons, curves and the ledger."""
