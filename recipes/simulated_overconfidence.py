"""Overconfidence against a known truth: simulated users, of whom the true probability of every next item is known.

SASRec's sigmoid is far above the truth, as Theorem 1 of the gSASRec paper says it must be, and gBCE with t = 1 and the
positive rejected predicts the truth itself. So it does only without dropout: what dropout hides in training is there
again when ranking, scores grow, and the same loss becomes overconfident.

Run:       python -m evaluation.run recipes/simulated_overconfidence.py
           python -m evaluation.report results/simulated_overconfidence --truth
Expected:  mean |p - P| over each user's first 10 items: SASRec 0.78, gSASRec with t=0.5 0.17, with t=1 0.023, the same
           with dropout 0.048, SASRec-Softmax 0.020; NDCG@10 0.515, 0.536, 0.535, 0.537, 0.539, Oracle 0.559
Duration:  11 minutes on two CPU cores that had other work too (5 minutes of processor time)
"""

from dataclasses import replace

from aprec_like.datasets import Lengths, Mixture, Simulated
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import Oracle, Popularity, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

data = Simulated(
    num_users=20_000,
    num_items=500,
    mixture=Mixture(popularity=0.2, preference=0.2, first_order=0.6, second_order=0.0),
    lengths=Lengths(median=30, spread=0.4, minimum=8, maximum=100),
)
training = Training(max_epochs=5, optimizer=Adam(learning_rate=2e-3))
small = SASRec(max_length=32, embedding_dim=64, dropout_rate=0.0)
sampled = {"training": training, "negatives": Negatives(reject_positive=True), "prior_start": True}

recipe = Recipe(
    dataset=data,
    models={
        "Popularity": Popularity(),
        "SASRec": Trained(small, BCE(num_negatives=1), **sampled),
        "gSASRec, t=0.5": Trained(small, GBCE(32, calibration=0.5), **sampled),
        "gSASRec, t=1": Trained(small, GBCE(32, calibration=1.0), **sampled),
        "gSASRec, t=1, dropout": Trained(replace(small, dropout_rate=0.3), GBCE(32, calibration=1.0), **sampled),
        "SASRec-Softmax": Trained(small, Softmax(), training),
        "Oracle": Oracle(data),
    },
)
