"""What a table says in words: its caption, and the notes below it."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.analysis.comparison import Comparison, Row
from evaluation.analysis.significance import TEST_NAMES, TRAINING_TESTS
from evaluation.analysis.variance import MIN_SEEDS
from evaluation.table import as_sentence


def caption(comparison: Comparison) -> str:
    """Return a sentence on what the numbers are, how they were tested and of what chance; `notes` has the rest."""
    return as_sentence("; ".join(caption_sentences(comparison)))


def caption_sentences(comparison: Comparison) -> list[str]:
    """Return the parts of the caption."""
    sentences = [
        f"means over {_users_text(comparison)}",
        f"the whole catalogue is ranked, seen items {'excluded' if comparison.exclude_seen else 'included'}",
    ]
    if len(comparison.rows) > 1:
        sentences.append("best in bold, second underlined")
    if comparison.num_candidates:
        drawn = f"the target among itself and {comparison.num_candidates} drawn items"
        sentences.insert(2, f"(sampled): {drawn}, not comparable with rankings of the catalogue")
    if comparison.family_size:
        rules = comparison.rules
        against = f"from {rules.baseline}" if rules.baseline else "from the best"
        sentences.append(
            f"{significance_mark(comparison)} differs {against} ({TEST_NAMES[rules.test]}, p < {rules.alpha:g}, "
            f"{family_text(comparison)})"
        )
    return [*sentences, *training_sentences(comparison)[:1]]


def notes(comparison: Comparison) -> list[str]:
    """Return sentences that readers must know: the data, the trainings, single models, the choice among variants."""
    sentences = [*comparison.data_sentences, *training_sentences(comparison)[1:], *comparison.choices]
    return [*map(as_sentence, sentences), *caveat_sentences(comparison.rows)]


def _users_text(comparison: Comparison) -> str:
    """Return how many users were ranked; for a random sample also of how many, and the widest 95 % intervals."""
    if comparison.sample is None:
        return f"{comparison.num_users:,} users"
    num_all, seed = comparison.sample
    widths = {
        metric: max((value.high - value.low) / 2 for value in (row.cells[metric].value for row in comparison.rows))
        for metric in comparison.metrics
        if comparison.rows
    }
    intervals = ", ".join(f"{width:.2g} in {metric}" for metric, width in widths.items())
    sample = f"a random sample of {comparison.num_users:,} of {num_all:,} users"
    return f"{sample} (seed {seed}; half-widths of 95 % intervals up to {intervals})"


def caveat_sentences(rows: Sequence[Row]) -> list[str]:
    """Return what readers must know about the values of single models."""
    return [f"{row.name}: {'; '.join(caveat.sentence for caveat in row.caveats)}." for row in rows if row.caveats]


def remedies(rows: Sequence[Row]) -> list[str]:
    """Return what would help the trainings of single models, once for all models that it would help."""
    helped: dict[str, list[str]] = {}
    for row in rows:
        for caveat in row.caveats:
            if caveat.remedy:
                helped.setdefault(caveat.remedy, []).append(row.name)
    return [f"{', '.join(names)}: {remedy}" for remedy, names in helped.items()]


def family_text(comparison: Comparison) -> str:
    """Return how p-values are corrected, and for which tests."""
    rules, size = comparison.rules, f"{comparison.family_size:,}"
    if rules.correction == "none":
        return f"not corrected, {size} tests"
    corrected = f"{rules.correction.capitalize()}-corrected over"
    if rules.baseline:
        return f"{corrected} {size} tests"
    return f"{corrected} all {size} pairs of models and metrics, which covers the choice of the best"


def training_sentences(comparison: Comparison) -> list[str]:
    """Return whether tests and intervals cover the chance in training beside that of users, then its size."""
    rows = [row for row in comparison.rows if row.origin != "counting"]
    if not rows:
        return []
    imported = [row.name for row in rows if row.origin == "imported"]
    sentences = [f"imported results are one training: {', '.join(imported)}"] if imported else []
    if not comparison.training_std:
        return [
            "one training of each model: intervals and tests cover the chance in users, not in training, and speak "
            "about these trained models, not about the methods",
            *sentences,
        ]
    num_seeds = sorted({len(row.seeds) for row in rows if row.origin == "trained"})
    spread = ", ".join(f"{value:.4f} in {metric}" for metric, value in comparison.training_std.items())
    several = [row for row in rows if len(row.seeds) > 1]
    covering = "intervals and tests cover users and trainings"
    if comparison.family_size and comparison.rules.test not in TRAINING_TESTS:
        covering = "intervals cover users and trainings, the test users alone: it speaks about these trained models"
    pooled = f"pooled over {len(several)} models" if len(several) > 1 else f"of {several[0].name}"
    own = [row.name for row in several if len(row.seeds) >= MIN_SEEDS]
    sentences = [
        f"{'' if len(rows) == len(comparison.rows) else 'models that train: '}means over {_join_numbers(num_seeds)} "
        f"trainings; {covering}",
        f"standard deviation between trainings: {spread}, {pooled}"
        + (f"; its own for {', '.join(own)}" if own and len(several) > 1 else ""),
        *sentences,
    ]
    if single := [row.name for row in rows if len(row.seeds) == 1 and row.origin == "trained"]:
        sentences.append(f"one training, taken to vary as those of the other models: {', '.join(single)}")
    return sentences


def _join_numbers(numbers: Sequence[int]) -> str:
    *first, last = map(str, numbers)
    return f"{', '.join(first)} or {last}" if first else last


def significance_mark(comparison: Comparison) -> str:
    """Return a star for differences from the best model, a dagger for differences from the baseline."""
    return "†" if comparison.rules.baseline else "*"


def shared_caption(titled: Sequence[tuple[str, Comparison]]) -> str:
    """Return the caption of one or several comparisons; what is true of all stands once, at the end."""
    if len(titled) == 1:
        ((title, comparison),) = titled
        return (f"{title}. " if title else "") + caption(comparison)
    shared, own = _split_shared([caption_sentences(comparison) for _, comparison in titled])
    sentences = [f"{title}: {'; '.join(texts)}." for (title, _), texts in zip(titled, own, strict=True) if texts]
    return " ".join([*sentences, *([as_sentence("; ".join(shared))] if shared else [])])


def shared_notes(titled: Sequence[tuple[str, Comparison]]) -> list[str]:
    """Return the notes of one or several comparisons, those that are true of all first."""
    shared, own = _split_shared([notes(comparison) for _, comparison in titled])
    return [*shared, *(f"{title}: {text}" for (title, _), texts in zip(titled, own, strict=True) for text in texts)]


def _split_shared(lists: Sequence[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return what all lists have, and the rest of each list."""
    shared = [text for text in lists[0] if all(text in other for other in lists)]
    return shared, [[text for text in texts if text not in shared] for texts in lists]
