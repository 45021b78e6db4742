"""Local models of transformers, scored through one prefix tree a batch."""
