"""Training: settings, the loop, and the state from which it resumes."""

from aprec_like.training.epoch_loop import TrainingControl
from aprec_like.training.loop import TrainingOutcome, train
from aprec_like.training.settings import EarlyStopping, Trained, Training
from aprec_like.training.step import make_step

__all__ = ["EarlyStopping", "Trained", "Training", "TrainingControl", "TrainingOutcome", "make_step", "train"]
