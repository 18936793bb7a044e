"""Gowalla: gSASRec against SASRec at 1.3 million items (the gSASRec paper's main results table), two learning rates.

People come back to the same places, so places of the history stay in the ranking. Softmax over all places and BERT4Rec
are infeasible here, as in the paper. About the learning rates see steam_gsasrec.py.

Run:       python -m evaluation.run recipes/gowalla_gsasrec.py
Expected:  NDCG@10 gSASRec 0.1616, SASRec 0.1097, MF-BPR 0.0170, Popularity 0.0041 (the paper)
Duration:  not measured; meant for a GPU with room for 326 million parameters (the paper reports 145 and 191 minutes)
"""

from dataclasses import replace

from aprec_like.datasets import Gowalla
from aprec_like.losses import BCE, GBCE
from aprec_like.models import Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Evaluation, Recipe, Trained
from aprec_like.training import Training

training = Training(batch_size=128, max_steps_per_epoch=256)
networks = {
    "SASRec": Trained(SASRec(), BCE(num_negatives=1), training),
    "gSASRec": Trained(SASRec(), GBCE(num_negatives=128, calibration=0.9), training),
}
slower = replace(training, optimizer=Adam(learning_rate=1e-4))
paper = {
    "Popularity": {"Recall@1": 0.0011, "Recall@10": 0.0081, "NDCG@10": 0.0041},
    "MF-BPR": {"Recall@1": 0.0083, "Recall@10": 0.0282, "NDCG@10": 0.0170},
    "SASRec": {"Recall@1": 0.0505, "Recall@10": 0.1831, "NDCG@10": 0.1097},
    "gSASRec": {"Recall@1": 0.0782, "Recall@10": 0.2590, "NDCG@10": 0.1616},
}

recipe = Recipe(
    dataset=Gowalla(),
    models={
        "Popularity": Popularity(),
        "MF-BPR": MFBPR(embedding_dim=128, epochs=20),
        **networks,
        **{f"{name}, 1e-4": replace(trained, training=slower) for name, trained in networks.items()},
    },
    groups={"learning rate 1e-3": tuple(networks), "learning rate 1e-4": tuple(f"{name}, 1e-4" for name in networks)},
    evaluation=Evaluation(exclude_seen=False),
    published=paper | {f"{name}, 1e-4": paper[name] for name in networks},
)
