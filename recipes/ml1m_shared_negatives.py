"""MovieLens-1M: negatives of each position's own against negatives that a whole batch shares, gBCE with prior_start.

A shared negative costs a column of one matrix product instead of a row gathered for every position, so there can be
many more of them in the same time.

Run:       python -m evaluation.run recipes/ml1m_shared_negatives.py --time-limit 3
Expected:  NDCG@10 256 per position 0.103 (11 epochs), 256 per batch 0.101 (21 epochs), 1,024 per batch 0.044, 3,000 per
           batch 0.019: more shared negatives start more slowly; how far the clock lets each come depends on the machine
Duration:  3 minutes of training each, on two CPU cores that had other work too
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE
from aprec_like.metrics import NDCG
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=100, early_stopping=EarlyStopping(NDCG(10), patience=20))
small = SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "256 per position": Trained(small, GBCE(256, 0.75), training, prior_start=True),
        **{
            f"{k:,} per batch": Trained(small, GBCE(k, 0.75), training, Negatives(shared_by="batch"), prior_start=True)
            for k in (256, 1_024, 3_000)
        },
    },
)
