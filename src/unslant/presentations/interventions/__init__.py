"""Atomic changes to how a question is shown, and their composition at random (P4, section 4.2)."""
