"""MovieLens-1M, RQ1: effects of the architecture and of negative sampling (the gSASRec paper's table of effects).

Two architectures are trained with one negative and with all items.

Run:       python -m evaluation.run recipes/ml1m_architecture_vs_sampling.py
           python -m evaluation.compare results/ml1m_architecture_vs_sampling --effects --metric NDCG@10
Expected:  NDCG@10 SASRec 0.131 with one negative, 0.169 with all items (+29.0 %); BERT4Rec 0.123 and 0.161 (+30.8 %),
           both significant; from SASRec to BERT4Rec -6.1 % and -4.7 %, neither significant (the paper)
Duration:  not measured; meant for a GPU
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

sasrec_training = Training(batch_size=128, max_steps_per_epoch=256)
softmax_training = Training(batch_size=64, max_steps_per_epoch=256)
bert4rec_training = Training(batch_size=64, max_steps_per_epoch=64)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "SASRec, 1 negative": Trained(SASRec(), BCE(num_negatives=1), sasrec_training),
        "SASRec, all items": Trained(SASRec(), Softmax(), softmax_training),
        "BERT4Rec, 1 negative": Trained(BERT4Rec(), BCE(num_negatives=1), bert4rec_training),
        "BERT4Rec, all items": Trained(BERT4Rec(), Softmax(), bert4rec_training),
    },
    published={
        "SASRec, 1 negative": {"NDCG@10": 0.131},
        "SASRec, all items": {"NDCG@10": 0.169},
        "BERT4Rec, 1 negative": {"NDCG@10": 0.123},
        "BERT4Rec, all items": {"NDCG@10": 0.161},
    },
)
