"""Which columns to keep: best subsets with proof, step by step, by scores of single columns, by models, by stability."""
