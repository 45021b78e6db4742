"""Base rates (P5): which labels a model likes before it has read anything."""
