"""The audit: every question in many orders, and what the score is worth."""
