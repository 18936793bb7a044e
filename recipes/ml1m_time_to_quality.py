"""MovieLens-1M: training time until models reach a given quality, with and without `prior_start` and shared negatives.

"From zero" is without `prior_start`, as in the paper; it has no effect with a softmax. Without it gSASRec stays at the
level of Popularity for 60 epochs, so these models have more patience.

Run:       python -m evaluation.run recipes/ml1m_time_to_quality.py
           python -m evaluation.compare results/ml1m_time_to_quality --time-to 0.10 0.13
Expected:  minutes to 0.10 and 0.13: SASRec-Softmax 0.8 and 1.1, gSASRec 1.2 and 1.6, gSASRec-shared 1.5 and 1.9, SASRec
           0.8 and 2.4; from zero SASRec the same, gSASRec 11.6 and 13.1, gSASRec-shared neither in 100 epochs
           (results/ml1m_time_to_quality)
Duration:  44 minutes on two CPU cores, at times with a light load
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, GBCE, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=60, early_stopping=EarlyStopping(NDCG(10), patience=10))
patient_training = replace(training, max_epochs=100, early_stopping=EarlyStopping(NDCG(10), patience=50))
network = SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3)
gbce = GBCE(num_negatives=256, calibration=0.75)
shared_negatives = Negatives(shared_by="batch")

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "SASRec": Trained(network, BCE(num_negatives=1), training, prior_start=True),
        "SASRec from zero": Trained(network, BCE(num_negatives=1), patient_training),
        "SASRec-Softmax": Trained(network, Softmax(), training),
        "gSASRec": Trained(network, gbce, training, prior_start=True),
        "gSASRec from zero": Trained(network, gbce, patient_training),
        "gSASRec-shared": Trained(network, gbce, training, shared_negatives, prior_start=True),
        "gSASRec-shared from zero": Trained(network, gbce, patient_training, shared_negatives),
    },
)
