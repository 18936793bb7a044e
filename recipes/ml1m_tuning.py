"""MovieLens-1M on two CPU cores: who wins when gSASRec, SASRec and SASRec-Softmax are tuned for the same time?

The models of ml1m_cpu.py with search spaces. `tune` gives each 45 minutes of training and writes ml1m_tuning_tuned.py
with the settings that validation chose; its table shows the budgets. gSASRec searches two settings more than the others
in the same time: the price of more settings is part of the comparison.

Run:       python -m evaluation.run recipes/ml1m_tuning.py (untuned)
           python -m evaluation.tune recipes/ml1m_tuning.py --hours 0.75 --fair --retrain 0
           python -m evaluation.run recipes/ml1m_tuning_tuned.py --seeds 2 3 4 (tuned; then the same tune once more)
Expected:  results/ml1m_tuning-tuning (the search) and results/ml1m_tuning_tuned (the table); docs/tuning.md tells what
           came out. Untuned as in results/ml1m_cpu: NDCG@10 gSASRec 0.159, SASRec-Softmax 0.154, SASRec 0.112
Duration:  by its budget 2 hours 15 minutes of training, here on one core of an AMD EPYC; the 9 trainings of the winners
           took 1 hour 31 minutes, on cores shared with other work
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
