"""The leaderboard: several models on several question sets, ranked whatever the order of options."""
