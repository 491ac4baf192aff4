"""Equations with one matrix for many shifts: (A + ρI) x = b, and the inverse of A + ρI."""
