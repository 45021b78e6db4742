"""Thin adapters to other harnesses; no logic of their own."""
