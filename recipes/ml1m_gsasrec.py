"""MovieLens-1M: gSASRec and its baselines (the gSASRec paper's main results table).

As in the paper, Popularity and MF-BPR also learn the 512 validation targets (`fit_on="mixed"`).

Run:       python -m evaluation.run recipes/ml1m_gsasrec.py
Expected:  NDCG@10 gSASRec 0.176, SASRec 0.131, SASRec-Softmax 0.169, BERT4Rec 0.161, MF-BPR 0.037, Popularity 0.017
           (the paper)
Duration:  Popularity takes seconds, MF-BPR 3.5 minutes on two CPU cores; the other networks are meant for a GPU and
           were not trained to the end (the paper reports 9 to 86 minutes)
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import BERT4Rec, Popularity, SASRec
from aprec_like.recipe import MFBPR, Evaluation, Recipe, Trained, gSASRec
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(
    batch_size=128,
    max_steps_per_epoch=256,
    max_epochs=10_000,
    early_stopping=EarlyStopping(NDCG(10), patience=200),
)

sasrec = SASRec(max_length=200, embedding_dim=128, num_blocks=2, num_heads=1, dropout_rate=0.5)

recipe = Recipe(
    dataset=MovieLens1M(),
    split=LeaveOneOut(num_validation_users=512, seed=31337),
    fit_on="mixed",
    models={
        "Popularity": Popularity(),
        "MF-BPR": MFBPR(embedding_dim=128, epochs=20),
        "BERT4Rec": Trained(BERT4Rec(), Softmax(), replace(training, batch_size=64, max_steps_per_epoch=64)),
        "SASRec-Softmax": Trained(sasrec, Softmax(), replace(training, batch_size=64)),
        "SASRec": Trained(sasrec, BCE(num_negatives=1), training),
        "gSASRec": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=False),
    },
    groups={"unsampled": ("BERT4Rec", "SASRec-Softmax"), "sampled": ("SASRec", "gSASRec")},
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10)), exclude_seen=True),
    seeds=(1,),
    # The paper reports 0.131 for SASRec here, and 0.126 as k=1, t=0 in its grid. It reports gSASRec 9.47 % above
    # BERT4Rec; these rounded values give 9.3 %.
    published={
        "Popularity": {"Recall@1": 0.005, "Recall@10": 0.036, "NDCG@10": 0.017, "Minutes": 0.0},
        "MF-BPR": {"Recall@1": 0.010, "Recall@10": 0.075, "NDCG@10": 0.037, "Minutes": 0.1},
        "BERT4Rec": {"Recall@1": 0.058, "Recall@10": 0.294, "NDCG@10": 0.161, "Minutes": 86},
        "SASRec-Softmax": {"Recall@1": 0.073, "Recall@10": 0.293, "NDCG@10": 0.169, "Minutes": 9},
        "SASRec": {"Recall@1": 0.046, "Recall@10": 0.247, "NDCG@10": 0.131, "Minutes": 13},
        "gSASRec": {"Recall@1": 0.082, "Recall@10": 0.300, "NDCG@10": 0.176, "Minutes": 23},
    },
    # Marked in the paper as significantly different from the best model.
    published_stars={
        **dict.fromkeys(("Popularity", "MF-BPR", "SASRec"), ("Recall@1", "Recall@10", "NDCG@10")),
        "BERT4Rec": ("Recall@1", "NDCG@10"),
    },
    literature={
        "DuoRec": {"Recall@10": 0.294, "NDCG@10": 0.168},
        "ALBERT4Rec": {"Recall@10": 0.300, "NDCG@10": 0.165},
        "CBiT": {"Recall@10": 0.301, "NDCG@10": 0.169},
    },
)
