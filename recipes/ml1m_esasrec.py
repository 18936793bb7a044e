"""MovieLens-1M: eSASRec (Tikhonovich et al., RecSys 2025) beside SASRec with the same loss, and gSASRec of its size.

The settings are those that the authors chose for MovieLens-1M (github.com/blondered/transformer_benchmark): 200 items,
64 dimensions, 2 blocks with one head, dropout 0.1, 256 uniform negatives without correction, at most 100 epochs with a
patience of 50, all users validated. Their NDCG@10, 0.1772 for eSASRec and 0.1684 for SASRec with a sampled softmax, is
not comparable with ours: their file has all 3,706 items, ours the 3,416 with at least 5 ratings. What can be compared
is the step from one block to the other.

Run:       python -m evaluation.run recipes/ml1m_esasrec.py
           python -m evaluation.compare results/ml1m_esasrec --ladder
Expected:  not measured; by the authors, on their file, LiGR blocks bring 0.009
Duration:  not measured
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.metrics import NDCG
from aprec_like.models import SASRecBlock
from aprec_like.recipe import Recipe, eSASRec, gSASRec
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=100, early_stopping=EarlyStopping(NDCG(10), patience=50))
sizes = {"max_length": 200, "embedding_dim": 64, "dropout_rate": 0.1}

recipe = Recipe(
    dataset=MovieLens1M(),
    split=LeaveOneOut(num_validation_users=None),
    models={
        "SASRec, sampled softmax": eSASRec(training, block=SASRecBlock(), **sizes),
        "eSASRec": eSASRec(training, **sizes),
        "gSASRec": gSASRec(training, **sizes),
    },
)
