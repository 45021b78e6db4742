"""The debiasing methods side by side (P1)."""
