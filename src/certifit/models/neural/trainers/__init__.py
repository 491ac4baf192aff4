"""What trains a network: native code, NumPy in double precision, a GPU."""
