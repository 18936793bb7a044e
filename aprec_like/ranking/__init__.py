"""Ranking of the whole catalogue for every user, without holding or sorting all scores."""

from aprec_like.ranking.rank_catalogue import NetworkScorer, Rankings, rank

__all__ = ["NetworkScorer", "Rankings", "rank"]
