"""MovieLens-1M beyond the paper: SASRec improved step by step, on two CPU cores.

Every model changes one setting of a model above it, and validation on all users decides whether the change is kept; the
ladder shows every step with its half-width, kept or not. Test values are no reason for a choice. On the same file and
split, without the same validation, Klenitskiy and Vasilev (RecSys 2023) report an NDCG@10 of 0.182 for SASRec with a
softmax over all items and 0.186 with 3,000 negatives that the user has not seen, of which "unseen items" is the limit.

Run:       python -m evaluation.run recipes/ml1m_best.py
           python -m evaluation.run recipes/ml1m_best.py --only SASRec-Softmax gSASRec --seeds 1 2 3
           python -m evaluation.compare results/ml1m_best --ladder
Expected:  not measured yet with these settings; results/ml1m_best holds an earlier ladder (d 64, 512 validation users)
           whose last model has 0.1785
Duration:  not measured
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import GSASREC_FLAVOUR, LiGR, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=200, early_stopping=EarlyStopping(NDCG(10), patience=15))
tied = replace(GSASREC_FLAVOUR, is_tied=True)
sasrec = SASRec(max_length=200, embedding_dim=64, dropout_rate=0.2, flavour=tied)
gated = replace(sasrec, block=LiGR())
wide = replace(gated, embedding_dim=128)
deep = replace(wide, num_blocks=3)
more_dropout = replace(deep, dropout_rate=0.3)
unseen = Softmax(excludes_history=True)

recipe = Recipe(
    dataset=MovieLens1M(),
    split=LeaveOneOut(num_validation_users=None),
    models={
        "SASRec-Softmax": Trained(sasrec, Softmax(), training),
        "gSASRec": Trained(sasrec, GBCE(num_negatives=256, calibration=0.75), training, prior_start=True),
        "unseen items": Trained(sasrec, unseen, training),
        "LiGR": Trained(gated, unseen, training),
        "d 128": Trained(wide, unseen, training),
        "3 blocks": Trained(deep, unseen, training),
        "dropout 0.3": Trained(more_dropout, unseen, training),
        "d 256": Trained(replace(more_dropout, embedding_dim=256), unseen, training),
    },
    literature={
        "WEARec (AAAI 2026), best of 88 runs": {"Recall@10": 0.333, "NDCG@10": 0.190},
        "SASRec, 3,000 negatives (Klenitskiy and Vasilev)": {"Recall@10": 0.316, "NDCG@10": 0.186},
        "SASRec, all items (Klenitskiy and Vasilev)": {"Recall@10": 0.315, "NDCG@10": 0.182},
        "gSASRec (the paper)": {"Recall@1": 0.082, "Recall@10": 0.300, "NDCG@10": 0.176},
    },
)
