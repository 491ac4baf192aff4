"""The structured interior-point method."""
