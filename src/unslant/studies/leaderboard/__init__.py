"""The leaderboard: several models on several question sets, ranked over all orders of options."""
