"""The contest: reads a table, seals a part of it, lets the methods compete and judges them once."""
