"""Calibration of finished models: predicted probabilities against what happened and, where it is known, the truth."""
