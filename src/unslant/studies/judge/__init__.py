"""Judges: how far a verdict on two answers depends on their order and length, and the verdict without that."""
