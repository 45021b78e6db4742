"""The instruction boundary (P3): how much of an answer in words is the instruction."""
