"""More than one machine: shards of a run and one table from them, and a cluster that scores for one run."""
