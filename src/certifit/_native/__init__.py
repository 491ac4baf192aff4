"""Compiled kernels; entered only through certifit.optimization and certifit.models."""
