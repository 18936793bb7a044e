"""Globo.com news clicks: sessions of 12 clicks on average and a catalogue of 364,047 articles, of which 41,367 occur.

The whole catalogue is ranked. The models are small and learn in minutes on two CPU cores.

Run:       python -m evaluation.run recipes/globo.py --time-limit 6
Expected:  NDCG@10 gSASRec 0.187, MF-BPR 0.076, Popularity 0.023 (Recall@10 0.343, 0.136, 0.055); gSASRec's is of an
           earlier version, after 4 minutes; with a time limit, its number of epochs depends on the machine. MF-BPR's
           learning rate was chosen by validation: NDCG@10 0.049, 0.065, 0.069, 0.066 with 0.5, 0.2, 0.1, 0.05
Duration:  28 minutes on two CPU cores under three times their load, most of them to rank 221,379 users
Data:      globo-full-catalogue.txt in the data folder: lines of `user item`, oldest first within a user, from the
           Globo.com dataset of news interactions (Moreira et al., 2018; for academic use)
"""

from aprec_like.datasets import TextFile
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import Popularity
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Evaluation, Recipe, gSASRec
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(
    batch_size=512,
    max_steps_per_epoch=128,
    max_epochs=12,
    early_stopping=EarlyStopping(NDCG(10), patience=4),
    optimizer=Adam(learning_rate=3e-3),
)

recipe = Recipe(
    dataset=TextFile("globo-full-catalogue.txt", num_items=364_047),
    split=LeaveOneOut(num_validation_users=512, seed=31337),
    models={
        "Popularity": Popularity(),
        "MF-BPR": MFBPR(embedding_dim=32, epochs=4, batch_size=8_192, learning_rate=0.1),
        "gSASRec": gSASRec(
            training,
            num_negatives=64,
            calibration=0.75,
            prior_start=True,
            max_length=16,
            embedding_dim=32,
            num_blocks=1,
            dropout_rate=0.2,
        ),
    },
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10)), exclude_seen=True),
)
