"""MovieLens-1M: negatives per position and negatives shared by the batch, with gBCE and `prior_start`.

A shared negative costs one column of a matrix product, a negative per position one gathered row per position, so many
more shared negatives fit in the same time.

Run:       python -m evaluation.run recipes/ml1m_shared_negatives.py --time-limit 3
Expected:  NDCG@10 256 per position 0.103 (11 epochs), 256 per batch 0.101 (21 epochs), 1,024 per batch 0.044, 3,000 per
           batch 0.019: more shared negatives learn more slowly at first; the number of epochs depends on the machine
Duration:  3 minutes of training per model on two busy CPU cores
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE
from aprec_like.metrics import NDCG
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=100, early_stopping=EarlyStopping(NDCG(10), patience=20))
network = SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "256 per position": Trained(network, GBCE(num_negatives=256, calibration=0.75), training, prior_start=True),
        **{
            f"{k:,} per batch": Trained(
                network,
                GBCE(num_negatives=k, calibration=0.75),
                training,
                Negatives(shared_by="batch"),
                prior_start=True,
            )
            for k in (256, 1_024, 3_000)
        },
    },
)
