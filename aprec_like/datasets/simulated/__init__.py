"""Simulated users with a known distribution of the next item, and its exact probabilities."""
