"""Measures ranking: test users ranked per second, by the fast and by the naive code."""

from __future__ import annotations

import time

import numpy as np

from aprec_like.interactions import MASK
from aprec_like.models import BERT4Rec, CountingModel
from aprec_like.ranking.rank_catalogue import NetworkScorer, rank
from aprec_like.recipe import Evaluation, Trained
from aprec_like.splits import HeldOut, Split
from evaluation.benchmarking.naive import naive_ranks
from evaluation.benchmarking.setup import Measurement, build_seeded_network, sequence_length

MAX_USERS = 2_048
NAIVE_CHUNK_USERS, MAX_NAIVE_SCORES = 128, 1 << 24
"""Users that the naive code ranks at once, and how many scores it sorts in all."""


def measure_ranking(model: Trained | CountingModel, split: Split, evaluation: Evaluation) -> Measurement:
    """Time the ranking of test users, after one ranking as warm-up."""
    held_out = sample_users(split, MAX_USERS)
    if isinstance(model, CountingModel):
        scorer = model.fit(split.test.known)
    else:
        scorer = NetworkScorer(build_seeded_network(model, model.training_data(split)))
    rank(scorer, held_out, exclude_seen=evaluation.exclude_seen, depth=evaluation.depth)
    started = time.monotonic()
    rank(scorer, held_out, exclude_seen=evaluation.exclude_seen, depth=evaluation.depth)
    return {"users_per_second": len(held_out) / (time.monotonic() - started)}


def measure_naive_ranking(model: Trained, split: Split, num_steps: int) -> Measurement:
    """Time the naive ranking of test users, its first chunk twice as warm-up; empty for user-item pairs."""
    length = sequence_length(model)
    if length is None:
        return {}
    data = model.training_data(split)
    network = build_seeded_network(model, data)
    held_out = sample_users(split, max(8, min(MAX_USERS, MAX_NAIVE_SCORES // data.num_items)))
    seconds = 0.0
    for start in range(-NAIVE_CHUNK_USERS, len(held_out), NAIVE_CHUNK_USERS):
        first = max(0, start)
        cases = np.arange(first, min(first + NAIVE_CHUNK_USERS, len(held_out)))
        histories = held_out.histories(cases)
        inputs = histories.last(length)
        if isinstance(model.model, BERT4Rec):
            inputs = np.pad(inputs[:, 1:], ((0, 0), (0, 1)), constant_values=MASK)
        seen = np.split(histories.items, histories.offsets[1:-1])
        started = time.monotonic()
        naive_ranks(network, inputs, seen, held_out.targets[cases])
        seconds += time.monotonic() - started if start >= 0 else 0.0
    return {"naive_users_per_second": len(held_out) / seconds}


def sample_users(split: Split, max_users: int) -> HeldOut:
    """Return at most `max_users` test users, equally spaced."""
    cases = np.unique(np.linspace(0, len(split.test) - 1, max_users).astype(int))
    return HeldOut(split.test.known, split.test.users[cases], split.test.targets[cases])
