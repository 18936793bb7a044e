"""Targets that can't be hit and training on the future are said beside the numbers."""

from pathlib import Path

import numpy as np
import pytest

from aprec_like.datasets import CSVFile
from aprec_like.models import Popularity
from aprec_like.recipe import Evaluation, Recipe
from aprec_like.splits import LeaveOneOut, TemporalSplit
from evaluation.analysis.comparison import compare_models
from evaluation.caveats.data import data_sentences
from evaluation.results.load import load_runs
from evaluation.running.data_description import describe_data
from tests.conftest import timed_interactions
from tests.evaluation.made_runs import make_run

EVENTS = [
    (1, 10, 1), (1, 11, 2), (1, 12, 3), (1, 10, 9),  # the target 10 was seen before
    (2, 11, 4), (2, 12, 5), (2, 99, 6),              # 99 occurs nowhere else
    (3, 10, 4), (3, 11, 7), (3, 12, 8),
]  # fmt: skip


def description(split, *, exclude_seen=True, fit_on="train"):
    recipe = Recipe(
        CSVFile("events.csv", user="user", item="item"),
        {"Popularity": Popularity()},
        split=split,
        fit_on=fit_on,
        evaluation=Evaluation(exclude_seen=exclude_seen),
    )
    interactions = timed_interactions(EVENTS)
    return describe_data(recipe, interactions, split.split(interactions))


@pytest.mark.parametrize(
    ("exclude_seen", "sentence"),
    [
        (True, "2 of 3 targets can't be hit by any model (1 never occur before the test, 1 are excluded as seen)"),
        (False, "1 of 3 targets can't be hit by any model (1 never occur before the test)"),
    ],
)
def test_targets_that_no_model_can_hit_are_counted(exclude_seen, sentence):
    assert sentence in data_sentences(description(LeaveOneOut(1), exclude_seen=exclude_seen))


@pytest.mark.parametrize(("fit_on", "is_told"), [("train", True), ("mixed", True), ("train+validation", False)])
def test_targets_that_only_the_validation_part_has_are_counted_unless_all_models_learn_it(fit_on, is_told):
    """By hand: with all users validated 12 is held back from users 1 and 2 and is the target of user 3."""
    told = "1 other targets occur in the validation part, but never in the training part"
    assert (told in data_sentences(description(LeaveOneOut(None), fit_on=fit_on))) is is_told
    assert told not in data_sentences(description(LeaveOneOut(1), fit_on=fit_on))


def test_a_repeated_interaction_does_not_add_to_the_density():
    """By hand: 9 of the 12 pairs of 3 users and 4 items occur, one of them twice."""
    assert description(LeaveOneOut(1))["density"] == 0.75


@pytest.mark.parametrize(("share", "is_told"), [(1.0, True), (0.53, True), (0.05, False), (None, False)])
def test_times_that_leave_much_of_the_order_open_are_told(share, is_told):
    told = [each for each in data_sentences({"users": 3, "tied_share": share}) if "have equal timestamps" in each]
    assert len(told) == is_told and (not is_told or told[0].startswith(f"{share:.0%} of consecutive"))


def test_users_without_a_target_are_counted():
    """By hand: three of ten times are at or after 7, of users 1 and 3; user 2 has none."""
    sentences = data_sentences(description(TemporalSplit(0.3, 0.3)))
    assert "1 of 3 users have no target in this split" in sentences
    assert not any("no target" in sentence for sentence in data_sentences(description(LeaveOneOut(1))))


def test_the_leak_is_told_to_those_who_use_leave_one_out():
    """By hand: of 7 training times 1 2 3 4 5 4 7, none is later than 9, one than 6, none than 8."""
    (sentence,) = [text for text in data_sentences(description(LeaveOneOut(1))) if "future" in text]
    assert f"{np.mean([0, 1 / 7, 0]):.1%} of the training interactions are later" in sentence
    assert not any("future" in text for text in data_sentences(description(TemporalSplit(0.3, 0.3))))


def test_the_notes_of_every_table_say_both_after_those_of_the_dataset(tmp_path: Path):
    run = make_run(tmp_path / "run")
    dataset = {name: value for name, value in run.read_dataset().items() if name != "files"}
    leakage = {"train_interactions": 10, "after_a_target": 5, "mean_share_after": 0.25}
    run.write_dataset(dataset | {"unreachable_targets": {"cold": 7, "seen": 941}, "leakage": leakage})
    sentences = compare_models(load_runs([run])).data_sentences
    assert sentences[1:] == (
        "a <note>",
        "948 of 300 targets can't be hit by any model (7 never occur before the test, 941 are excluded as seen)",
        "25% of consecutive interactions of a user have equal timestamps: the rule for ties, by default the order of "
        "the file, decides what is the next item",
        "leave-one-out trains on the future: on average 25.0% of the training interactions are later than a user's "
        "test target",
    )
