"""MovieLens-1M: gSASRec against its baselines (the gSASRec paper's main results table, the models that exist so far).

Run:       python -m evaluation.run recipes/ml1m_gsasrec.py
Expected:  NDCG@10 gSASRec 0.176, SASRec 0.131, SASRec-Softmax 0.169, Popularity 0.017 (the paper)
Duration:  Popularity in seconds; the networks were not trained to their end here: they are meant for a GPU
           (the paper reports 13 minutes for SASRec, 23 for gSASRec, 9 for SASRec-Softmax)
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Evaluation, Recipe, Trained, gSASRec
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
    models={
        "Popularity": Popularity(),
        "SASRec-Softmax": Trained(sasrec, Softmax(), replace(training, batch_size=64)),
        "SASRec": Trained(sasrec, BCE(num_negatives=1), training),
        "gSASRec": gSASRec(training, num_negatives=256, calibration=0.75),
    },
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10)), exclude_seen=True),
    seeds=(1,),
    published={
        "Popularity": {"Recall@1": 0.005, "Recall@10": 0.036, "NDCG@10": 0.017},
        "SASRec-Softmax": {"Recall@1": 0.073, "Recall@10": 0.293, "NDCG@10": 0.169},
        "SASRec": {"Recall@1": 0.046, "Recall@10": 0.247, "NDCG@10": 0.131},
        "gSASRec": {"Recall@1": 0.082, "Recall@10": 0.300, "NDCG@10": 0.176},
    },
    literature={
        "DuoRec": {"Recall@10": 0.294, "NDCG@10": 0.168},
        "ALBERT4Rec": {"Recall@10": 0.300, "NDCG@10": 0.165},
        "CBiT": {"Recall@10": 0.301, "NDCG@10": 0.169},
    },
)
