"""MovieLens-1M past the paper: a ladder of changes to SASRec, each chosen by validation users, on two CPU cores.

Every rung is the one before it with one change. Klenitskiy and Vasilev (RecSys 2023) report 0.186 on this very file for
SASRec with sampled softmax over 3,000 shared negatives: the last rung but for its size.

Run:       python -m evaluation.run recipes/ml1m_best.py
Expected:  not known yet
Duration:  not measured
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, SampledSoftmax, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import GSASREC_FLAVOUR, SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Recipe, Trained, gSASRec
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=100, early_stopping=EarlyStopping(NDCG(10), patience=15))
small = {"max_length": 100, "embedding_dim": 64, "dropout_rate": 0.3}
tied = SASRec(**small, flavour=replace(GSASREC_FLAVOUR, is_tied=True))
shared = Negatives(shared_by="batch")
many = SampledSoftmax(num_negatives=3_000)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "SASRec": Trained(SASRec(**small), BCE(num_negatives=1), training, prior_start=True),
        "gBCE": gSASRec(training, num_negatives=256, calibration=0.75, prior_start=True, **small),
        "all items": Trained(SASRec(**small), Softmax(), training),
        "all items, tied tables": Trained(tied, Softmax(), training),
        "3,000 shared": Trained(tied, many, training, shared),
        "3,000 shared, 200 items": Trained(replace(tied, max_length=200), many, training, shared),
        "3,000 shared, 128 dimensions": Trained(
            replace(tied, max_length=200, embedding_dim=128), many, training, shared
        ),
    },
    literature={
        "SASRec, 3,000 negatives (Klenitskiy and Vasilev)": {"Recall@10": 0.316, "NDCG@10": 0.186},
        "SASRec, all items (Klenitskiy and Vasilev)": {"Recall@10": 0.315, "NDCG@10": 0.182},
        "gSASRec (the paper)": {"Recall@1": 0.082, "Recall@10": 0.300, "NDCG@10": 0.176},
    },
)
