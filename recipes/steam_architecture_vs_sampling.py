"""Steam, RQ1: effects of the architecture and of negative sampling (the gSASRec paper's table of effects).

Two architectures are trained with one negative and with all items.

Run:       python -m evaluation.run recipes/steam_architecture_vs_sampling.py
           python -m evaluation.compare results/steam_architecture_vs_sampling --effects --metric NDCG@10
Expected:  NDCG@10 SASRec 0.0581 with one negative, 0.0721 with all items (+24.1 %); BERT4Rec 0.0513 and 0.0746
           (+45.4 %); from SASRec to BERT4Rec -11.7 % with one negative and +3.4 % with all items; all four significant
           (the paper)
Duration:  not measured; meant for a GPU
"""

from aprec_like.datasets import Steam
from aprec_like.losses import BCE, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

slow_adam = Adam(learning_rate=1e-4)  # most likely the paper's, see steam_gsasrec.py
sasrec_training = Training(batch_size=128, max_steps_per_epoch=256, optimizer=slow_adam)
softmax_training = Training(batch_size=64, max_steps_per_epoch=256, optimizer=slow_adam)
bert4rec_training = Training(batch_size=64, max_steps_per_epoch=64, optimizer=slow_adam)

recipe = Recipe(
    dataset=Steam(),
    models={
        "SASRec, 1 negative": Trained(SASRec(), BCE(num_negatives=1), sasrec_training),
        "SASRec, all items": Trained(SASRec(), Softmax(), softmax_training),
        "BERT4Rec, 1 negative": Trained(BERT4Rec(), BCE(num_negatives=1), bert4rec_training),
        "BERT4Rec, all items": Trained(BERT4Rec(), Softmax(), bert4rec_training),
    },
    published={
        "SASRec, 1 negative": {"NDCG@10": 0.0581},
        "SASRec, all items": {"NDCG@10": 0.0721},
        "BERT4Rec, 1 negative": {"NDCG@10": 0.0513},
        "BERT4Rec, all items": {"NDCG@10": 0.0746},
    },
)
