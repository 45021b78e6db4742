"""Loaded by inspect_ai through the entry point ``unslant``; importing the package around it registers everything."""
