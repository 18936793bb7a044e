"""Results folders: writing, reading and verifying them; the only code that knows their file names."""
