"""Sentences on the data of a run: targets that no ranking can hit, and training on the future."""

from __future__ import annotations

from aprec_like.types import Json

MIN_TIED_SHARE = 0.1
"""From this share of ties on, readers must know that not the times alone order the interactions."""


def data_sentences(dataset: Json) -> list[str]:
    """Return what a reader must know about the split, from the content of dataset.json."""
    found = [*dataset.get("notes", []), _users_sentence(dataset), _unreachable_sentence(dataset)]
    found += [_unlearned_sentence(dataset), _ties_sentence(dataset)]
    return [sentence for sentence in (*found, leakage_sentence(dataset.get("leakage"))) if sentence]


def _users_sentence(dataset: Json) -> str | None:
    """Return how many users are not evaluated, because the split finds no target for them; `None` if all are."""
    split = dataset.get("split", {})
    num_tested = split.get("sampled_from", split.get("test_users"))
    if num_tested is None or num_tested >= dataset["users"]:
        return None
    return f"{dataset['users'] - num_tested:,} of {dataset['users']:,} users have no target in this split"


def _unreachable_sentence(dataset: Json) -> str | None:
    """Return how many targets are misses whatever the model; `None` if there are none."""
    counts = dataset.get("unreachable_targets") or {}
    reasons = {"never occur before the test": "cold", "are excluded as seen": "seen"}
    texts = [f"{counts[name]:,} {reason}" for reason, name in reasons.items() if counts.get(name)]
    if not texts:
        return None
    total, num_targets = counts["cold"] + counts["seen"], dataset.get("split", {}).get("test_users", 0)
    return f"{total:,} of {num_targets:,} targets can't be hit by any model ({', '.join(texts)})"


def _unlearned_sentence(dataset: Json) -> str | None:
    """Return how many targets are hit by chance alone; `None` if there are none."""
    num_unlearned = (dataset.get("unreachable_targets") or {}).get("unlearned")
    if not num_unlearned:
        return None
    return f"{num_unlearned:,} other targets occur in the validation part, but never in the training part"


def _ties_sentence(dataset: Json) -> str | None:
    """Return how many interactions their times do not order, as after a rounding to days; `None` if they are few."""
    tied_share = dataset.get("tied_share")
    if tied_share is None or tied_share < MIN_TIED_SHARE:
        return None
    return (
        f"{tied_share:.0%} of consecutive interactions of a user have equal timestamps: the rule for ties, by default "
        f"the order of the file, decides what is the next item"
    )


def leakage_sentence(leakage: Json | None) -> str | None:
    """Return how much leave-one-out trains on the future; `None` without timestamps, or if it does not."""
    if not leakage or not leakage["mean_share_after"]:
        return None
    return (
        f"leave-one-out trains on the future: on average {leakage['mean_share_after']:.1%} of the training "
        f"interactions are later than a user's test target"
    )
