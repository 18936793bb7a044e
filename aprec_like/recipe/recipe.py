"""Declaration of an experiment: `Recipe`, and the settings of its evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from aprec_like.candidates import UniformCandidates
from aprec_like.datasets import Dataset
from aprec_like.datasets.cache import filter_cached
from aprec_like.errors import InputError
from aprec_like.filters import Filter
from aprec_like.interactions import Interactions
from aprec_like.metrics import NDCG, Metric, Recall
from aprec_like.models import CountingModel, Oracle
from aprec_like.recipe.space import SearchSpace, check_space
from aprec_like.recipe.tuning import TuningBudget
from aprec_like.settings import OMIT_DEFAULT, check_tuple, check_type
from aprec_like.splits import FIT_ON, AsGiven, FitOn, LeaveOneOut, Split, SplitRule, sample_cases
from aprec_like.training.settings import Trained

MetricTable = Mapping[str, Mapping[str, float]]
"""Values of metrics by name of the model and name of the metric."""

MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class Evaluation:
    """Settings of the evaluation of rankings.

    Args:
        metrics: metrics, which are the columns of the table.
        exclude_seen: exclude the items of a user's history from the ranking.
        depth: number of top items stored per user.
        candidates: additionally rank the target among sampled items, which adds a second column per metric; its values
            are not comparable with those of the whole catalogue.
        users: rank a fixed random sample of this many test users, and of as many validation users, instead of all.
            Captions say so, and intervals cover the choice of the sample.
        seed: seed of the sample, the same for all models.

    Example:
        >>> Evaluation(metrics=(Recall(10), NDCG(10)), candidates=UniformCandidates(100)).columns
        ('Recall@10', 'NDCG@10', 'Recall@10 (sampled)', 'NDCG@10 (sampled)')
    """

    metrics: tuple[Metric, ...] = (Recall(1), Recall(10), NDCG(10))
    exclude_seen: bool = True
    depth: int = 100
    candidates: UniformCandidates | None = None
    users: int | None = field(default=None, kw_only=True, metadata=OMIT_DEFAULT)
    seed: int = field(default=1, kw_only=True, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        check_tuple("Evaluation", "metrics", self.metrics)
        if not self.metrics:
            raise ValueError("Evaluation needs at least one metric. Received: none")
        for metric in self.metrics:
            check_type("Evaluation", "metrics", metric, Metric, "Recall(10)")
        if len(set(self.metrics)) < len(self.metrics):
            raise ValueError(f"Evaluation needs each metric once. Received: {', '.join(map(str, self.metrics))}")
        if self.depth < 1:
            raise ValueError(f"Evaluation needs a depth of at least 1. Received: depth={self.depth}")
        if self.users is not None and self.users < 2:
            raise ValueError(f"Evaluation needs at least 2 users to rank. Received: users={self.users}")
        if not 0 <= self.seed <= MAX_SEED:
            raise ValueError(f"Evaluation needs a seed from 0 to 2**32 - 1. Received: seed={self.seed}")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the metrics, followed by the names of their sampled variants if there are candidates."""
        names = tuple(map(str, self.metrics))
        return names + (tuple(map(sampled_name, names)) if self.candidates else ())


def sampled_name(metric: str) -> str:
    """Return the name of a metric of the rank among sampled candidates."""
    return f"{metric} (sampled)"


@dataclass(frozen=True)
class Recipe:
    """Experiment that compares models on the same users of one dataset.

    Args:
        dataset: source of the interactions.
        models: models by the name that the table shows.
        filters: filters of the interactions, applied in this order.
        split: rule that splits the interactions into training, validation and test.
        fit_on: interactions that all models learn from: "train", "train+validation", or "mixed" as in the gSASRec
            paper, where only networks leave out the validation part (see `FitOn`).
        evaluation: settings of the evaluation.
        groups: names of models that the table shows together, by name of the group; models without a group come first.
        seeds: training seeds; every model is trained once per seed.
        published: values that a paper reports for these models; the table shows them beside the measured ones. Beside
            metrics, "Minutes" of training may be given: `compare --check` compares their ratios between models.
        published_stars: by model, the metrics in which the paper marks it as significantly different from its best.
        known_differences: why a model is not expected to have its published values, by model; `compare --check` shows
            the reason and does not fail for this model.
        literature: rows quoted from elsewhere, shown below the table and never tested for significance.
        title: name of the data in captions, such as "MovieLens-1M"; by default that of the dataset's class or file.
        spaces: settings that `python -m evaluation.tune` searches, by name of the model; for example
            `{"gSASRec": {"learning_rate": LogUniform(1e-4, 1e-2), "num_negatives": Choice((16, 64, 256))}}`.
        tuning: budgets with which settings were chosen, by name of the model; the table shows them.

    Example:
        >>> from aprec_like.datasets import Simulated
        >>> from aprec_like.models import Popularity
        >>> from aprec_like.recipe import gSASRec
        >>> from aprec_like.training import Training
        >>> recipe = Recipe(
        ...     dataset=Simulated(num_users=1_000, num_items=500),
        ...     models={
        ...         "Popularity": Popularity(),
        ...         "gSASRec": gSASRec(Training(max_epochs=10), num_negatives=64, calibration=0.75),
        ...     },
        ...     seeds=(1, 2, 3),
        ... )
        >>> recipe.evaluation.columns
        ('Recall@1', 'Recall@10', 'NDCG@10')
    """

    dataset: Dataset
    models: Mapping[str, Trained | CountingModel]
    filters: tuple[Filter, ...] = ()
    split: SplitRule = field(default_factory=LeaveOneOut)
    fit_on: FitOn = "train"
    evaluation: Evaluation = field(default_factory=Evaluation)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    seeds: tuple[int, ...] = (1,)
    published: MetricTable = field(default_factory=dict)
    published_stars: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known_differences: Mapping[str, str] = field(default_factory=dict)
    literature: MetricTable = field(default_factory=dict)
    title: str = field(default="", kw_only=True, metadata=OMIT_DEFAULT)
    spaces: Mapping[str, SearchSpace] = field(default_factory=dict, kw_only=True, metadata=OMIT_DEFAULT)
    tuning: Mapping[str, TuningBudget] = field(default_factory=dict, kw_only=True, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        self._check_data()
        self._check_models()
        check_tuple("Recipe", "seeds", self.seeds)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or not all(0 <= s <= MAX_SEED for s in self.seeds):
            raise ValueError(f"Recipe needs distinct seeds from 0 to 2**32 - 1. Received: seeds={self.seeds}")
        grouped = [name for names in self.groups.values() for name in names]
        if set(grouped) - set(self.models) or len(set(grouped)) < len(grouped):
            raise ValueError(f"Recipe needs groups of its models, each in at most one group. Received: {self.groups}")
        if unknown := {*self.published, *self.published_stars, *self.known_differences} - set(self.models):
            raise ValueError(
                "Recipe needs published values of its models; values of other models belong in literature. "
                f"Received: {', '.join(sorted(unknown))}"
            )
        self._check_tuning()

    def load(self, data_dir: Path) -> Interactions:
        """Load and filter the interactions; raises `InputError` if that fails or fewer than 2 items are left."""
        interactions = filter_cached(self.dataset.load(data_dir), self.filters)
        if interactions.num_items < 2:
            raise InputError(f"ranking needs at least 2 items. Received: {interactions.num_items}")
        return interactions

    def split_interactions(self, interactions: Interactions) -> Split:
        """Split the interactions, and sample the users to rank if the evaluation says so."""
        return sample_cases(self.split.split(interactions), self.evaluation.users, self.evaluation.seed)

    def _check_data(self) -> None:
        check_type("Recipe", "dataset", self.dataset, Dataset)
        check_type("Recipe", "split", self.split, SplitRule)
        check_type("Recipe", "evaluation", self.evaluation, Evaluation)
        if self.fit_on not in FIT_ON:
            raise ValueError(f"Recipe needs fit_on to be one of {', '.join(FIT_ON)}. Received: {self.fit_on!r}")
        check_type("Recipe", "title", self.title, str)
        if not self.title.isprintable():
            raise ValueError(f"Recipe needs a printable title. Received: {self.title!r}")
        check_tuple("Recipe", "filters", self.filters)
        for each in self.filters:
            check_type("Recipe", "filters", each, Filter)
        if self.filters and isinstance(self.split, AsGiven):
            raise ValueError("Recipe can't have filters with AsGiven: the given split refers to unfiltered sequences")

    def _check_models(self) -> None:
        check_type("Recipe", "models", self.models, dict)
        if not self.models:
            raise ValueError("Recipe needs at least one model. Received: none")
        for name, model in self.models.items():
            if not isinstance(name, str) or not name.strip() or not name.isprintable():
                raise ValueError(f"Recipe needs printable names of models. Received: {name!r}")
            check_type("Recipe", f"models[{name!r}]", model, (Trained, CountingModel))
            if isinstance(model, Oracle) and model.dataset != self.dataset:
                raise ValueError(f"Recipe needs {name!r} to be the Oracle of its dataset. Received: {model.dataset}")
            if isinstance(model, Oracle) and self.filters:
                raise ValueError(f"Recipe can't have the Oracle {name!r} of filtered data")

    def _check_tuning(self) -> None:
        if unknown := {*self.spaces, *self.tuning} - set(self.models):
            raise ValueError(
                f"Recipe needs spaces and tuning of its models. Received: {', '.join(sorted(map(str, unknown)))}"
            )
        for name, space in self.spaces.items():
            check_space(name, self.models[name], space)
        for name, budget in self.tuning.items():
            check_type("Recipe", f"tuning[{name!r}]", budget, TuningBudget)
