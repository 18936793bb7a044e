"""Steam, RQ1: effects of the architecture and of negative sampling (the gSASRec paper's table of effects).

Two architectures are trained with one negative and with all items, each with the two learning rates of
steam_gsasrec.py: which of them the paper used is not certain. `--effects` takes the learning rate as a third factor.

Run:       python -m evaluation.run recipes/steam_architecture_vs_sampling.py
           python -m evaluation.compare results/steam_architecture_vs_sampling --effects --metric NDCG@10
Expected:  NDCG@10 SASRec 0.0581 with one negative, 0.0721 with all items (+24.1 %); BERT4Rec 0.0513 and 0.0746
           (+45.4 %); from SASRec to BERT4Rec -11.7 % with one negative and +3.4 % with all items; all four significant
           (the paper)
Duration:  not measured; meant for a GPU
"""

from dataclasses import replace

from aprec_like.datasets import Steam
from aprec_like.losses import BCE, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

sasrec_training = Training(batch_size=128, max_steps_per_epoch=256)
softmax_training = Training(batch_size=64, max_steps_per_epoch=256)
bert4rec_training = Training(batch_size=64, max_steps_per_epoch=64)
slow_adam = Adam(learning_rate=1e-4)  # most likely the paper's, see steam_gsasrec.py

models = {
    "SASRec, 1 negative": Trained(SASRec(), BCE(num_negatives=1), sasrec_training),
    "SASRec, all items": Trained(SASRec(), Softmax(), softmax_training),
    "BERT4Rec, 1 negative": Trained(BERT4Rec(), BCE(num_negatives=1), bert4rec_training),
    "BERT4Rec, all items": Trained(BERT4Rec(), Softmax(), bert4rec_training),
}
published = {
    "SASRec, 1 negative": {"NDCG@10": 0.0581},
    "SASRec, all items": {"NDCG@10": 0.0721},
    "BERT4Rec, 1 negative": {"NDCG@10": 0.0513},
    "BERT4Rec, all items": {"NDCG@10": 0.0746},
}

recipe = Recipe(
    dataset=Steam(),
    models={
        **models,
        **{
            f"{name}, 1e-4": replace(trained, training=replace(trained.training, optimizer=slow_adam))
            for name, trained in models.items()
        },
    },
    groups={
        "learning rate 1e-3": tuple(models),
        "learning rate 1e-4": tuple(f"{name}, 1e-4" for name in models),
    },
    published=published | {f"{name}, 1e-4": published[name] for name in models},
)
