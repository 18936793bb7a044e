"""Statistics and tables computed from stored results."""
