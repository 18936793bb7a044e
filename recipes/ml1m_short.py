"""MovieLens-1M in minutes on two CPU cores: a small SASRec that a slow test trains, and the effect of `prior_start`.

Run:       python -m evaluation.run recipes/ml1m_short.py
Expected:  NDCG@10 SASRec-Softmax 0.14, gSASRec 0.10, gSASRec-from-zero 0.02 (still at the level of Popularity)
Duration:  7 minutes for SASRec-Softmax, 12 and 7 for the two gSASRec on two busy CPU cores; never run as a whole
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import Softmax
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained, gSASRec
from aprec_like.training import Training

training = Training(batch_size=128, max_epochs=10)
architecture = {"max_length": 100, "embedding_dim": 64, "dropout_rate": 0.3}

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "Popularity": Popularity(),
        "SASRec-Softmax": Trained(SASRec(**architecture), Softmax(), training),
        "gSASRec": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=True, **architecture),
        "gSASRec-from-zero": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=False, **architecture),
    },
)
