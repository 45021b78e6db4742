"""The experiments: each reads like its recipe (load, present, ask, measure, report)."""
