"""MovieLens-1M on two CPU cores: who wins when gSASRec, SASRec and SASRec-Softmax are tuned for the same time?

Written by evaluation.tune from ml1m_tuning.py (sha256 1669695ba8a9f963) on 2026-11-20: settings of SASRec-Softmax,
SASRec, gSASRec chosen on validation. Its source follows unchanged; the chosen settings are at the end.

Run:       python -m evaluation.run recipes/ml1m_tuning_tuned.py
Expected:  SASRec-Softmax: validation NDCG@10 0.2101 chose trial 5 of 7
           SASRec: validation NDCG@10 0.1617 chose trial 23 of 26
           gSASRec: validation NDCG@10 0.2077 chose trial 5 of 21
Duration:  1 hour 31 minutes of training for seeds 2, 3 and 4, on cores shared with other work
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Choice, LogUniform, Recipe, Trained, Uniform, gSASRec
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=60, early_stopping=EarlyStopping(NDCG(10), patience=10))
architecture = {"max_length": 100, "embedding_dim": 64, "dropout_rate": 0.3}
shared = {
    "learning_rate": LogUniform(3e-4, 1e-2),
    "dropout_rate": Uniform(0.1, 0.5),
    "max_length": Choice((50, 100, 200)),
}

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "Popularity": Popularity(),
        "SASRec-Softmax": Trained(SASRec(**architecture), Softmax(), training),
        "SASRec": Trained(SASRec(**architecture), BCE(num_negatives=1), training, prior_start=True),
        "gSASRec": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=True, **architecture),
    },
    spaces={
        "SASRec-Softmax": shared,
        "SASRec": shared,
        "gSASRec": {
            **shared,
            "num_negatives": Choice((16, 64, 256)),
            "calibration": Uniform(0.0, 1.0),
        },
    },
)

# The settings that validation chose, and what it cost to choose them.
from aprec_like.recipe import TuningBudget, tuned_recipe  # noqa: E402

recipe = tuned_recipe(
    recipe,
    settings={
        "SASRec-Softmax": {
            "learning_rate": 0.0015447602836811704,
            "dropout_rate": 0.4129505990794641,
            "max_length": 200,
        },
        "SASRec": {
            "learning_rate": 0.002112681002181628,
            "dropout_rate": 0.3253711371960647,
            "max_length": 200,
        },
        "gSASRec": {
            "learning_rate": 0.0015447602836811704,
            "dropout_rate": 0.4129505990794641,
            "max_length": 200,
            "num_negatives": 64,
            "calibration": 0.49070806106321674,
        },
    },
    budgets={
        "SASRec-Softmax": TuningBudget(trials=7, hours=0.75, epochs=247, num_settings=3, max_hours=0.75),
        "SASRec": TuningBudget(trials=26, hours=0.7501, epochs=587, num_settings=3, max_hours=0.75),
        "gSASRec": TuningBudget(trials=21, hours=0.7504, epochs=435, num_settings=5, max_hours=0.75),
    },
)
