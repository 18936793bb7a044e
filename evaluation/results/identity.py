"""What a model's results are of: run, model, seed, and digests of the settings and data that they depend on.

status.json of a finished model holds its identity beside the sha256 of its files, so that results in another model's
folder, of other settings or of other data are recognised.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from aprec_like.errors import InputError
from aprec_like.types import Json

SHARED_SETTINGS = ("dataset", "filters", "split", "evaluation")
"""Settings shared by all models of a run; results with different ones must not be in one table."""

NOT_RANKING = ("metrics", "depth")
"""Settings of the evaluation that the ranks of targets do not depend on."""


class ChangedDuringRunError(InputError):
    """The recipe or the data are no longer those that the run started with."""


@dataclass(frozen=True)
class Identity:
    """What the results of a model are of.

    Args:
        run: name of the run, as its folder was called when it was started.
        model: name of the model.
        seed: training seed.
        settings: sha256 of the settings that the ranks of targets depend on.
        data: sha256 of catalogue and sequences.
        split: sha256 of users and targets.
    """

    run: str
    model: str
    seed: int
    settings: str
    data: str
    split: str

    def to_json(self) -> Json:
        """Return the identity as a JSON object."""
        return asdict(self)

    def differences(self, stored: Json) -> Iterator[str]:
        """Yield how a stored identity differs from this one, in words."""
        if stored.get("run") != self.run:
            yield f"it belongs to the run {stored.get('run')}, not {self.run}"
        if (stored.get("model"), stored.get("seed")) != (self.model, self.seed):
            yield f"it holds the results of {stored.get('model')}, seed {stored.get('seed')}"
        for name, other in (("settings", "other settings"), ("data", "other data"), ("split", "another split")):
            if stored.get(name) != getattr(self, name):
                yield f"its results are of {other} than the run has"


def identify(recipe: Json, dataset: Json, model: str, seed: int) -> Identity:
    """Return the identity that a model's results must have.

    Args:
        recipe: the content of recipe.json.
        dataset: the content of dataset.json.
        model: name of the model.
        seed: training seed.
    """
    shared = {name: recipe.get(name) for name in SHARED_SETTINGS}
    evaluation: Mapping[str, object] = recipe["evaluation"]
    shared["evaluation"] = {name: value for name, value in evaluation.items() if name not in NOT_RANKING}
    settings = {**shared, "model": recipe["models"].get(model)}
    is_learned = learns_validation(settings["model"] or {}, recipe.get("fit_on", "mixed"))
    if is_learned != learns_validation(settings["model"] or {}, "mixed"):
        settings["learns_validation"] = is_learned  # otherwise digests are those of earlier versions
    text = json.dumps(settings, sort_keys=True)
    return Identity(
        run=recipe["run"],
        model=model,
        seed=seed,
        settings=hashlib.sha256(text.encode()).hexdigest(),
        data=dataset["sha256"],
        split=dataset.get("split", {}).get("digest", "none"),
    )


def learns_validation(model: Json, fit_on: str) -> bool:
    """Return whether a model with these settings in recipe.json learns from the validation part too."""
    if fit_on != "mixed":
        return fit_on == "train+validation"
    is_trained = model.get("class", "Trained") == "Trained"
    return not is_trained or bool((model.get("training") or {}).get("learns_validation_targets"))


def changed_code(stored: Json, settings: Json, models: Iterable[str]) -> Iterator[str]:
    """Yield the recipe's own classes of these models, and of data and metrics, whose code differs between two recipes.

    Args:
        stored: the content of recipe.json; those of earlier versions do not know the code.
        settings: the same of the recipe as it is now.
        models: names of models.
    """
    before, after = (each.get("code", {}) for each in (stored, settings))
    pairs = [(before.get("models", {}).get(name, {}), after.get("models", {}).get(name, {})) for name in models]
    for old, new in (*pairs, (before.get("shared", {}), after.get("shared", {}))):
        yield from (name for name, digest in old.items() if new.get(name, digest) != digest)


def check_unchanged_settings(recipe: Json, stored: Json, model: str, source: object) -> None:
    """Check that the settings of a recipe are those that its run has stored; raises `ChangedDuringRunError`.

    Args:
        recipe: settings of the recipe as it is now.
        stored: the content of recipe.json.
        model: name of the model that is to be run.
        source: the recipe file, for the error.
    """
    changed = [name for name in SHARED_SETTINGS if recipe.get(name) != stored.get(name)]
    if recipe.get("fit_on") != stored.get("fit_on"):
        changed.append("fit_on")
    if recipe["models"].get(model) is None or recipe["models"][model] != stored["models"].get(model):
        changed.append(f"models[{model!r}]")
    changed += [f"code of {name}" for name in changed_code(stored, recipe, [model])]
    if changed:
        raise ChangedDuringRunError(
            f"{source}: was changed during the run ({', '.join(changed)}); no model is mixed in; put it back and start "
            f"the same command again, or train all models with --fresh"
        )


def check_unchanged_data(data: str, split: str, expected: Identity) -> None:
    """Check that digests of data and split are those of the run; raises `ChangedDuringRunError`."""
    if (data, split) != (expected.data, expected.split):
        raise ChangedDuringRunError(
            "the data were changed during the run; no model is mixed in; put them back and start the same command "
            "again, or train all models with --fresh"
        )
