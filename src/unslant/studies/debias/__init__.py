"""Comparison of debiasing methods (P1)."""
