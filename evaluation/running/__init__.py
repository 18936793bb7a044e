"""Running a recipe: checks, one process per model and seed, progress, signals."""
