"""More than one process: shards of a run and one table from them, a cluster or several GPUs that score for one run."""
