"""What all studies share: options, running, outputs, provenance, results, comparison."""
