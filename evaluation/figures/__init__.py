"""Figures of stored results."""
