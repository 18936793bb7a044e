"""MovieLens-1M with the paper's model sizes and three seeds: the gSASRec paper's main results table on two CPU cores.

Networks, losses, batches and steps per epoch are those of ml1m_gsasrec.py. There are two differences from the paper:
the binary losses use `prior_start`, which saves about 60 epochs and by itself changes no ranking, and training stops
after 30 epochs without improvement instead of 200. BERT4Rec is not included, because its epochs take ten times as long.

As in the paper, Popularity and MF-BPR also learn the 512 validation targets (`fit_on="mixed"`).

Run:       python -m evaluation.run recipes/ml1m_paper_size.py
Expected:  NDCG@10 gSASRec 0.167 (0.168 and 0.166), SASRec-Softmax 0.161 (one seed), SASRec 0.127 (0.130 and 0.123),
           MF-BPR 0.038, Popularity 0.018 (results/ml1m_paper_size); the paper 0.176, 0.169, 0.131, 0.037, 0.017
Duration:  a seed of SASRec-Softmax 46 minutes (48 epochs), SASRec 35 and 56 (72 and 83), gSASRec 44 and 47 (71 and 69),
           on two CPU cores under several times their load; the other trainings of the three seeds were not run yet
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import MFBPR, Evaluation, Recipe, Trained, gSASRec
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(
    batch_size=128,
    max_steps_per_epoch=256,
    max_epochs=10_000,
    early_stopping=EarlyStopping(NDCG(10), patience=30),
)
sasrec = SASRec(max_length=200, embedding_dim=128, num_blocks=2, num_heads=1, dropout_rate=0.5)

recipe = Recipe(
    dataset=MovieLens1M(),
    split=LeaveOneOut(num_validation_users=512, seed=31337),
    fit_on="mixed",
    models={
        "Popularity": Popularity(),
        "MF-BPR": MFBPR(embedding_dim=128, epochs=20),
        "SASRec-Softmax": Trained(sasrec, Softmax(), replace(training, batch_size=64)),
        "SASRec": Trained(sasrec, BCE(num_negatives=1), training, prior_start=True),
        "gSASRec": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=True),
    },
    groups={"unsampled": ("SASRec-Softmax",), "sampled": ("SASRec", "gSASRec")},
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10)), exclude_seen=True),
    seeds=(1, 2, 3),
    published={
        "Popularity": {"Recall@1": 0.005, "Recall@10": 0.036, "NDCG@10": 0.017, "Minutes": 0.0},
        "MF-BPR": {"Recall@1": 0.010, "Recall@10": 0.075, "NDCG@10": 0.037, "Minutes": 0.1},
        "SASRec-Softmax": {"Recall@1": 0.073, "Recall@10": 0.293, "NDCG@10": 0.169, "Minutes": 9},
        "SASRec": {"Recall@1": 0.046, "Recall@10": 0.247, "NDCG@10": 0.131, "Minutes": 13},
        "gSASRec": {"Recall@1": 0.082, "Recall@10": 0.300, "NDCG@10": 0.176, "Minutes": 23},
    },
    # Marked in the paper as significantly different from the best model.
    published_stars={
        **dict.fromkeys(("Popularity", "MF-BPR", "SASRec"), ("Recall@1", "Recall@10", "NDCG@10")),
    },
)
