"""Trackers of trainings: what other tools show while a model is trained."""
