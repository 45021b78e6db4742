"""Base rates (P5): the labels a model prefers before reading anything."""
