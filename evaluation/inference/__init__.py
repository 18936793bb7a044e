"""Finished models at work: recommendations for new histories, and exported models."""
