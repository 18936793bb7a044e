"""Measuring the cost of training steps and of ranking."""
