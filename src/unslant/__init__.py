"""unslant: how much of a multiple-choice score is option order, label preference or luck."""

__version__ = "0.1.0"
