"""Explanation: importance and dependence."""
