"""Loss functions, one per file, usable in any Keras model. Importing them does not import TensorFlow."""

from aprec_like.losses.base import BinaryLoss, FullLoss, Loss, SampledLoss
from aprec_like.losses.bce import BCE
from aprec_like.losses.bpr import BPR
from aprec_like.losses.gbce import GBCE
from aprec_like.losses.left_out import LeftOut
from aprec_like.losses.sampled_softmax import SampledSoftmax
from aprec_like.losses.softmax import Softmax

__all__ = [
    "BCE",
    "BPR",
    "GBCE",
    "BinaryLoss",
    "FullLoss",
    "LeftOut",
    "Loss",
    "SampledLoss",
    "SampledSoftmax",
    "Softmax",
]
