"""Overconfidence measured on simulated users, for whom the true probability of every next item is known.

The sigmoid of SASRec is far above the true probability, as Theorem 1 of the gSASRec paper predicts. gBCE with t = 1 and
positives rejected from the negatives predicts the true probability, but only without dropout: units dropped in training
are active in ranking, which increases the scores and makes the same loss overconfident.

Run:       python -m evaluation.run recipes/simulated_overconfidence.py
           python -m evaluation.report results/simulated_overconfidence --truth
Expected:  with seed 1 alone, mean |p - P| over each user's first 10 items: SASRec 0.78, gSASRec with t=0.5 0.17, with
           t=1 0.023, the same with dropout 0.048, SASRec-Softmax 0.020; NDCG@10 0.515, 0.536, 0.535, 0.537, 0.539,
           Oracle 0.559
Duration:  for one of the three seeds 11 minutes on two busy CPU cores (5 minutes of processor time)
"""

from dataclasses import replace

from aprec_like.datasets import Lengths, Mixture, Simulated
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.models import Oracle, Popularity, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

dataset = Simulated(
    num_users=20_000,
    num_items=500,
    mixture=Mixture(popularity=0.2, preference=0.2, first_order=0.6, second_order=0.0),
    lengths=Lengths(median=30, spread=0.4, minimum=8, maximum=100),
)
training = Training(max_epochs=5, optimizer=Adam(learning_rate=2e-3))
network = SASRec(max_length=32, embedding_dim=64, dropout_rate=0.0)
with_dropout = replace(network, dropout_rate=0.3)
sampled = {"training": training, "negatives": Negatives(reject_positive=True), "prior_start": True}

recipe = Recipe(
    dataset=dataset,
    models={
        "Popularity": Popularity(),
        "SASRec": Trained(network, BCE(num_negatives=1), **sampled),
        "gSASRec, t=0.5": Trained(network, GBCE(num_negatives=32, calibration=0.5), **sampled),
        "gSASRec, t=1": Trained(network, GBCE(num_negatives=32, calibration=1.0), **sampled),
        "gSASRec, t=1, dropout": Trained(with_dropout, GBCE(num_negatives=32, calibration=1.0), **sampled),
        "SASRec-Softmax": Trained(network, Softmax(), training),
        "Oracle": Oracle(dataset),
    },
    seeds=(1, 2, 3),
)
