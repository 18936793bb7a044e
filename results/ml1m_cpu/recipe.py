"""MovieLens-1M on two CPU cores: the gSASRec paper's main results table with smaller models.

Differences from the paper: histories of 100 items instead of 200, 64 dimensions instead of 128, and dropout 0.3 instead
of 0.5. BERT4Rec has two layers and a feed-forward dimension of 256, does not attend to padding, and an epoch has all
users (94 steps instead of 64). SASRec-Softmax has batches of 128 instead of 64. gSASRec and SASRec use `prior_start`.
Training stops after 10 epochs without improvement instead of 200, and after at most 60 epochs. The paper's values are
therefore a reference, not the expected result.

As the paper does, models without validation also learn the 512 validation targets (`fit_on="mixed"`).

Run:       python -m evaluation.run recipes/ml1m_cpu.py
Expected:  NDCG@10 gSASRec 0.159, SASRec-Softmax 0.154, Markov chain 0.126, BERT4Rec 0.123, SASRec 0.112, MF-BPR 0.038,
           Popularity 0.018 (results/ml1m_cpu)
Duration:  35 minutes on two CPU cores, shared with other processes for half of the time: BERT4Rec 15, the others 3 to 6
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import BERT4Rec, MarkovChain, Popularity, SASRec
from aprec_like.recipe import MFBPR, Recipe, Trained, gSASRec
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=60, early_stopping=EarlyStopping(NDCG(10), patience=10))
architecture = {"max_length": 100, "embedding_dim": 64, "dropout_rate": 0.3}
bert4rec = BERT4Rec(
    max_length=100, embedding_dim=64, num_layers=2, feed_forward_dim=256, dropout_rate=0.2, is_padding_attended=False
)

recipe = Recipe(
    dataset=MovieLens1M(),
    fit_on="mixed",
    models={
        "Popularity": Popularity(),
        "Markov chain": MarkovChain(),
        "MF-BPR": MFBPR(embedding_dim=128, epochs=20),
        "BERT4Rec": Trained(bert4rec, Softmax(), replace(training, batch_size=64, max_epochs=60)),
        "SASRec-Softmax": Trained(SASRec(**architecture), Softmax(), training),
        "SASRec": Trained(SASRec(**architecture), BCE(num_negatives=1), training, prior_start=True),
        "gSASRec": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=True, **architecture),
    },
    groups={"unsampled": ("BERT4Rec", "SASRec-Softmax"), "sampled": ("SASRec", "gSASRec")},
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
    known_differences=dict.fromkeys(
        ("BERT4Rec", "SASRec-Softmax", "SASRec", "gSASRec"),
        "a smaller network with shorter histories, trained for at most 60 epochs; the recipe lists all differences",
    ),
    literature={
        "DuoRec": {"Recall@10": 0.294, "NDCG@10": 0.168},
        "ALBERT4Rec": {"Recall@10": 0.300, "NDCG@10": 0.165},
        "CBiT": {"Recall@10": 0.301, "NDCG@10": 0.169},
    },
)
