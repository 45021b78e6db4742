"""What loading made of a question file, and what is odd about it."""
