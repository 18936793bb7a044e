"""Sentences on the data of a run: targets that no ranking can hit, and training on the future."""

from __future__ import annotations

from aprec_like.types import Json


def data_sentences(dataset: Json) -> list[str]:
    """Return what a reader must know about the split, from the content of dataset.json."""
    found = [_unreachable_sentence(dataset), leakage_sentence(dataset.get("leakage"))]
    return [sentence for sentence in found if sentence]


def _unreachable_sentence(dataset: Json) -> str | None:
    """Return how many targets are misses whatever the model; `None` if there are none."""
    counts = dataset.get("unreachable_targets") or {}
    reasons = {"never occur before the test": "cold", "are excluded as seen": "seen"}
    texts = [f"{counts[name]:,} {reason}" for reason, name in reasons.items() if counts.get(name)]
    if not texts:
        return None
    total, num_targets = sum(counts.values()), dataset.get("split", {}).get("test_users", 0)
    return f"{total:,} of {num_targets:,} targets can't be hit by any model ({', '.join(texts)})"


def leakage_sentence(leakage: Json | None) -> str | None:
    """Return how much leave-one-out trains on the future; `None` without timestamps, or if it does not."""
    if not leakage or not leakage["mean_share_after"]:
        return None
    return (
        f"leave-one-out trains on the future: on average {leakage['mean_share_after']:.1%} of the training "
        f"interactions are later than a user's test target"
    )
