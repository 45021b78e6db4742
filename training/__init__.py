"""How the reference models are made: their world of facts, the planted habits and the training. Not shipped."""
