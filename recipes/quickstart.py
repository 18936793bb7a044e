"""All models on simulated users, without a download, in minutes on two CPU cores.

Run:       python -m evaluation.run recipes/quickstart.py
           with --seeds 1 2 3 for tests about methods instead of single trainings, in three times the time
Expected:  NDCG@10 SASRec-Softmax 0.30, gSASRec 0.30, SASRec 0.23, BERT4Rec 0.08 (before convergence), MF-BPR 0.04,
           Popularity 0.03; Markov chain 0.32, because the simulated transitions are random and counting learns them
           best; Oracle 0.42, the best possible ranking
Duration:  5 minutes on two CPU cores, twice that beside other work
"""

from dataclasses import replace

from aprec_like.datasets import Lengths, Simulated
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import BERT4Rec, MarkovChain, Oracle, Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Evaluation, Recipe, Trained, gSASRec
from aprec_like.training import EarlyStopping, Training

data = Simulated(num_users=6_000, num_items=2_000, lengths=Lengths(median=25, spread=0.5, minimum=8, maximum=100))
training = Training(
    batch_size=128,
    max_epochs=40,
    early_stopping=EarlyStopping(NDCG(10), patience=6),
    optimizer=Adam(learning_rate=3e-3),
)
architecture = {"max_length": 32, "embedding_dim": 64, "num_blocks": 2, "dropout_rate": 0.3}
bert4rec = BERT4Rec(
    max_length=32,
    embedding_dim=64,
    num_layers=2,
    feed_forward_dim=256,
    dropout_rate=0.1,
    is_padding_attended=False,
)
# Only masked items are targets, so BERT4Rec needs more steps; it has not converged after 30 epochs.
bert4rec_training = replace(
    training,
    batch_size=32,
    max_epochs=30,
    early_stopping=EarlyStopping(NDCG(10), patience=15),
    optimizer=Adam(learning_rate=1e-3),
)

recipe = Recipe(
    dataset=data,
    models={
        "Popularity": Popularity(),
        "Markov chain": MarkovChain(),
        "MF-BPR": MFBPR(embedding_dim=64, epochs=20),
        "BERT4Rec": Trained(bert4rec, Softmax(), bert4rec_training),
        "SASRec-Softmax": Trained(SASRec(**architecture), Softmax(), training),
        "SASRec": Trained(SASRec(**architecture), BCE(num_negatives=1), training, prior_start=True),
        "gSASRec": gSASRec(training, num_negatives=64, calibration=0.75, prior_start=True, **architecture),
        "Oracle": Oracle(data),
    },
    groups={"unsampled": ("BERT4Rec", "SASRec-Softmax"), "sampled": ("SASRec", "gSASRec")},
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10))),
)
