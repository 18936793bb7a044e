"""Results folders: writes, reads and verifies their files; the only package that knows the file names."""
