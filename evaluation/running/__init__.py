"""Runs recipes: preflight checks, one worker process per model and seed, progress, signals."""
