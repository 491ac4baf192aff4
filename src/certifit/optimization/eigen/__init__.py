"""Leading eigenvectors of a symmetric matrix, given by itself or by its products."""
