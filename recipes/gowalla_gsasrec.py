"""Gowalla: gSASRec and SASRec with 1.3 million items and two learning rates (the gSASRec paper's main results table).

Users visit the same places again, so the places of the history are ranked as well. Softmax over all places and BERT4Rec
are infeasible, as in the paper. steam_gsasrec.py explains the two learning rates.

As in the paper, Popularity and MF-BPR also learn the 512 validation targets (`fit_on="mixed"`).

The original code numbers only items that occur in training, so that its catalogue, and k / |I| in the loss, leave out
places that occur as targets alone. Here they are in the catalogue, as the paper's size of 1,271,638 has it, and can be
drawn as negatives and ranked; such a target is a miss in both.

Run:       python -m evaluation.run recipes/gowalla_gsasrec.py
Expected:  NDCG@10 gSASRec 0.1616, SASRec 0.1097, MF-BPR 0.0170, Popularity 0.0041 (the paper)
Duration:  not measured; needs a GPU with memory for 326 million parameters (the paper reports 145 and 191 minutes)
"""

from dataclasses import replace

from aprec_like.datasets import Gowalla
from aprec_like.losses import BCE, GBCE
from aprec_like.models import Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Evaluation, Recipe, Trained
from aprec_like.training import Training

training = Training(batch_size=128, max_steps_per_epoch=256)
neural_models = {
    "SASRec": Trained(SASRec(), BCE(num_negatives=1), training),
    "gSASRec": Trained(SASRec(), GBCE(num_negatives=128, calibration=0.9), training),
}
slow_training = replace(training, optimizer=Adam(learning_rate=1e-4))
published = {
    "Popularity": {"Recall@1": 0.0011, "Recall@10": 0.0081, "NDCG@10": 0.0041, "Minutes": 0.1},
    "MF-BPR": {"Recall@1": 0.0083, "Recall@10": 0.0282, "NDCG@10": 0.0170, "Minutes": 2.1},
    "SASRec": {"Recall@1": 0.0505, "Recall@10": 0.1831, "NDCG@10": 0.1097, "Minutes": 145},
    "gSASRec": {"Recall@1": 0.0782, "Recall@10": 0.2590, "NDCG@10": 0.1616, "Minutes": 191},
}

recipe = Recipe(
    dataset=Gowalla(),
    fit_on="mixed",
    models={
        "Popularity": Popularity(),
        "MF-BPR": MFBPR(embedding_dim=128, epochs=20),
        **neural_models,
        **{f"{name}, 1e-4": replace(trained, training=slow_training) for name, trained in neural_models.items()},
    },
    groups={
        "learning rate 1e-3": tuple(neural_models),
        "learning rate 1e-4": tuple(f"{name}, 1e-4" for name in neural_models),
    },
    evaluation=Evaluation(exclude_seen=False),
    published=published | {f"{name}, 1e-4": published[name] for name in neural_models},
    # Marked in the paper as significantly different from the best model.
    published_stars=dict.fromkeys(
        ("Popularity", "MF-BPR", "SASRec", "SASRec, 1e-4"), ("Recall@1", "Recall@10", "NDCG@10")
    ),
)
