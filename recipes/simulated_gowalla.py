"""A million items without a download: simulated users with Gowalla's sizes, and the models of the gSASRec paper.

The data has 86,168 users, 1,271,638 items, 6.4 million interactions and repeats. The models include those that the
paper calls infeasible on Gowalla. The settings are the paper's for Gowalla, with two exceptions: the two models that
score all items have smaller batches, and gSASRec-shared learns in minutes on two CPU cores. It is a small network with
4,096 negatives shared by the batch instead of 128 per position, and its optimiser updates only the rows that a step
used, so the cost of a step does not depend on the catalogue. Most rows are used rarely, and outdated momentum would
mislead them, so beta_1 is 0. There is no Oracle: true probabilities of a million items per user are infeasible.

Run:       python -m evaluation.run recipes/simulated_gowalla.py --only Popularity gSASRec-shared --time-limit 20
Expected:  NDCG@10 Popularity 0.039, gSASRec-shared 0.144 (Recall@10 0.067 and 0.231) after 16 epochs, whose number
           depends on the machine; counting the successors of the last item would give a Recall@10 of 0.45
Duration:  20 minutes of training and 18 of ranking 86,168 users, on two CPU cores under twice their load; the other
           models train until they no longer improve, which takes a GPU
"""

from dataclasses import replace

from aprec_like.datasets import GOWALLA_LENGTHS, Mixture, Simulated
from aprec_like.losses import GBCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import BERT4Rec, Popularity, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(
    batch_size=128,
    max_steps_per_epoch=256,
    max_epochs=10_000,
    early_stopping=EarlyStopping(NDCG(10), patience=200),
)
small_batches = replace(training, batch_size=16)
sasrec = SASRec(max_length=200, embedding_dim=128, num_blocks=2, num_heads=1, dropout_rate=0.5)

recipe = Recipe(
    dataset=Simulated(
        num_users=86_168,
        num_items=1_271_638,
        mixture=Mixture(popularity=0.1, preference=0.2, first_order=0.5, second_order=0.2),
        lengths=GOWALLA_LENGTHS,
        has_repeats=True,
        zipf_exponent=1.2,
    ),
    split=LeaveOneOut(num_validation_users=512, seed=31337),
    models={
        "Popularity": Popularity(),
        "gSASRec": Trained(sasrec, GBCE(num_negatives=128, calibration=0.9), training),
        "gSASRec-shared": Trained(
            SASRec(max_length=50, embedding_dim=64, num_blocks=1, dropout_rate=0.1),
            GBCE(num_negatives=4_096, calibration=0.5),
            replace(training, optimizer=Adam(learning_rate=3e-3, beta_1=0.0, lazy=True)),
            Negatives(shared_by="batch"),
            prior_start=True,
        ),
        "SASRec-Softmax": Trained(sasrec, Softmax(), small_batches),
        "BERT4Rec": Trained(BERT4Rec(), Softmax(), small_batches),
    },
    groups={"sampled": ("gSASRec", "gSASRec-shared"), "unsampled": ("SASRec-Softmax", "BERT4Rec")},
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10)), exclude_seen=False),
)
