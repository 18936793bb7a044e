"""Splits of interactions into training, validation and test: one file per splitting rule."""

from aprec_like.splits.as_given import AsGiven
from aprec_like.splits.base import HeldOut, Split, SplitRule
from aprec_like.splits.fit_on import FIT_ON, FitOn, counted_interactions
from aprec_like.splits.leakage import Leakage, leave_one_out_leakage
from aprec_like.splits.leave_one_out import LeaveOneOut
from aprec_like.splits.sample import sample_cases
from aprec_like.splits.temporal import TemporalSplit

__all__ = [
    "FIT_ON",
    "AsGiven",
    "FitOn",
    "HeldOut",
    "Leakage",
    "LeaveOneOut",
    "Split",
    "SplitRule",
    "TemporalSplit",
    "counted_interactions",
    "leave_one_out_leakage",
    "sample_cases",
]
