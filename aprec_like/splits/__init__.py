"""Splits of interactions into training, validation and test: one file per splitting rule."""

from aprec_like.splits.as_given import AsGiven
from aprec_like.splits.base import HeldOut, Split, SplitRule
from aprec_like.splits.leakage import Leakage, leave_one_out_leakage
from aprec_like.splits.leave_one_out import LeaveOneOut
from aprec_like.splits.temporal import TemporalSplit

__all__ = [
    "AsGiven",
    "HeldOut",
    "Leakage",
    "LeaveOneOut",
    "Split",
    "SplitRule",
    "TemporalSplit",
    "leave_one_out_leakage",
]
