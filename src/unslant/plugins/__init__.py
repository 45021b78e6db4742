"""Thin adapters to other evaluation harnesses."""
