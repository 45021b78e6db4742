"""Plan a run: ``unslant plan``."""
