"""Sampling of negative items, with replacement and in the TensorFlow graph."""

from aprec_like.negatives.negatives import Negatives
from aprec_like.negatives.sampler import Sampler

__all__ = ["Negatives", "Sampler"]
