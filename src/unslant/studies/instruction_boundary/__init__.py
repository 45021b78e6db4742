"""The instruction boundary (P3): the effect of instructions on generated answers."""
