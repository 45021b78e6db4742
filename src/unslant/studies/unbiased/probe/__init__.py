"""The evaluator probe (P4): the bias of model-made benchmarks."""
