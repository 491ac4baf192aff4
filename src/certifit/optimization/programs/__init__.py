"""Linear programs by HiGHS, and problems over the simplex."""
