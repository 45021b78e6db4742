"""More than one machine: what all of them ask, the share of one, and one table from the tables of all."""
