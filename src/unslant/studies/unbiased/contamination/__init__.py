"""Contamination (P4): what seeing the test set does to a score."""
