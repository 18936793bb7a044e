"""A first table without a download: simulated users, a few minutes on two CPU cores.

Run:       python -m evaluation.run recipes/quickstart.py
Expected:  NDCG@10 gSASRec 0.29, SASRec 0.20, Popularity 0.03; the Oracle, which no model can beat, 0.42
Duration:  4.5 minutes on two CPU cores
"""

from aprec_like.datasets import Lengths, Simulated
from aprec_like.losses import BCE
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import Oracle, Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import Evaluation, Recipe, Trained, gSASRec
from aprec_like.training import EarlyStopping, Training

data = Simulated(num_users=6_000, num_items=2_000, lengths=Lengths(median=25, spread=0.5, minimum=8, maximum=100))
training = Training(
    batch_size=128,
    max_epochs=40,
    early_stopping=EarlyStopping(NDCG(10), patience=6),
    optimizer=Adam(learning_rate=3e-3),
)
small = {"max_length": 32, "embedding_dim": 64, "num_blocks": 2, "dropout_rate": 0.2}

recipe = Recipe(
    dataset=data,
    models={
        "Popularity": Popularity(),
        "SASRec": Trained(SASRec(**small), BCE(num_negatives=1), training, prior_start=True),
        "gSASRec": gSASRec(training, num_negatives=64, calibration=0.75, prior_start=True, **small),
        "Oracle": Oracle(data),
    },
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10))),
)
