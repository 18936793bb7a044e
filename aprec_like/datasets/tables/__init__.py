"""Tables with one row per interaction: reading in chunks, checks, and sorting on disk."""
