"""Sentence on the interactions that the models of a table learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aprec_like.types import Json
from evaluation.results.load import ModelResults


def learning_data_sentence(models: Sequence[ModelResults], dataset: Json) -> str | None:
    """Return whether the models learned from the same interactions, and from which; `None` if it is not known of any.

    Args:
        models: the models of a table.
        dataset: content of dataset.json.
    """
    learns = {model.name: model.learns_validation for model in models if model.learns_validation is not None}
    if not learns:
        return None
    imported = [model.name for model in models if model.origin == "imported"]
    unknown = f"; what {', '.join(imported)} learned from is not known" if imported else ""
    return _known_sentence(learns, dataset, "all our models" if imported else "all models") + unknown


def _known_sentence(learns: Mapping[str, bool], dataset: Json, all_models: str) -> str:
    """Return the sentence on models of which it is known whether they learned from the validation part."""
    if not any(learns.values()):
        return f"{all_models} learn from the training part alone"
    if all(learns.values()):
        return (
            f"{all_models} learn from the training and validation parts, networks for the epochs that validation chose"
        )
    more, others = ([name for name, is_learned in learns.items() if is_learned is wanted] for wanted in (True, False))
    return (
        f"not all models learn from the same data: {', '.join(more)} also from the validation part"
        f"{_size_of_validation(dataset)}, {', '.join(others)} not"
    )


def _size_of_validation(dataset: Json) -> str:
    split = dataset.get("split", {})
    num_train = split.get("train_interactions")
    # Folders of earlier versions lack the number, which for leave-one-out is that of the validation users.
    num_validation = dataset.get("validation_interactions", split.get("validation_users"))
    if not num_train or num_validation is None:
        return ""
    return f" ({num_validation:,} interactions beside {num_train:,})"
