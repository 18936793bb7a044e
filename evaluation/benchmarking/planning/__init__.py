"""Predicts the time and memory of a training from a few of its steps, and compares that with a training."""
