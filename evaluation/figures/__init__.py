"""Figures drawn from stored results."""
