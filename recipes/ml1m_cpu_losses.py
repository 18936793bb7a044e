"""MovieLens-1M on two CPU cores, RQ4: four losses on two architectures, with smaller models.

The networks of ml1m_cpu.py (histories of 100 items, 64 dimensions; its docstring lists all differences from the paper),
with the numbers of negatives for which the gSASRec paper reports values: 16 for SASRec, 4 for BERT4Rec. The paper's
values are a reference, not the expected result; what can be compared is the order of the losses.

Run:       python -m evaluation.run recipes/ml1m_cpu_losses.py
           python -m evaluation.report results/ml1m_cpu_losses
Expected:  not measured; in the paper gBCE is best with few negatives, more clearly for SASRec
Duration:  not measured; about 3 hours on two CPU cores, from the times of ml1m_cpu.py
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=60, early_stopping=EarlyStopping(NDCG(10), patience=10))
bert4rec_training = replace(training, batch_size=64)
sasrec = SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3)
bert4rec = BERT4Rec(
    max_length=100, embedding_dim=64, num_layers=2, feed_forward_dim=256, dropout_rate=0.2, is_padding_attended=False
)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "SASRec, BCE, k=16": Trained(sasrec, BCE(num_negatives=16), training, prior_start=True),
        "SASRec, gBCE, k=16": Trained(sasrec, GBCE(num_negatives=16, calibration=1.0), training, prior_start=True),
        "SASRec, SSM, k=16": Trained(sasrec, SampledSoftmax(num_negatives=16), training),
        "SASRec, softmax": Trained(sasrec, Softmax(), training),
        "BERT4Rec, BCE, k=4": Trained(bert4rec, BCE(num_negatives=4), bert4rec_training, prior_start=True),
        "BERT4Rec, gBCE, k=4": Trained(
            bert4rec, GBCE(num_negatives=4, calibration=1.0), bert4rec_training, prior_start=True
        ),
        "BERT4Rec, SSM, k=4": Trained(bert4rec, SampledSoftmax(num_negatives=4), bert4rec_training),
        "BERT4Rec, softmax": Trained(bert4rec, Softmax(), bert4rec_training),
    },
    seeds=(1, 2, 3),
    published={
        "SASRec, BCE, k=16": {"Recall@1": 0.0673},
        "SASRec, gBCE, k=16": {"Recall@1": 0.0769},
        "SASRec, SSM, k=16": {"Recall@1": 0.0635},
        "SASRec, softmax": {"Recall@1": 0.073, "NDCG@10": 0.169},
        "BERT4Rec, BCE, k=4": {"Recall@1": 0.055, "NDCG@10": 0.150},
        "BERT4Rec, gBCE, k=4": {"Recall@1": 0.059, "NDCG@10": 0.154},
        "BERT4Rec, SSM, k=4": {"Recall@1": 0.046, "NDCG@10": 0.134},
        "BERT4Rec, softmax": {"Recall@1": 0.058, "NDCG@10": 0.161},
    },
    known_differences=dict.fromkeys(
        (
            *("SASRec, BCE, k=16", "SASRec, gBCE, k=16", "SASRec, SSM, k=16", "SASRec, softmax"),
            *("BERT4Rec, BCE, k=4", "BERT4Rec, gBCE, k=4", "BERT4Rec, SSM, k=4", "BERT4Rec, softmax"),
        ),
        "a smaller network with shorter histories, trained for at most 60 epochs",
    ),
)
