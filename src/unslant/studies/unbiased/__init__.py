"""The unbiased evaluator (P4): a score that must survive a change of presentation."""
