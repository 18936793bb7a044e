"""Simulated users with a known law of the next item, and the true probabilities that it implies."""
