"""MovieLens-1M, RQ2: predicted probabilities and observed precision (the gSASRec paper's Figures 1 and 2).

Run:       python -m evaluation.run recipes/ml1m_overconfidence.py
           python -m evaluation.report results/ml1m_overconfidence
Expected:  mean predicted probability of the first item: SASRec about 1, gSASRec 0.57 with t=0.5 and 0.13 with t=1; sum
           of the probabilities of all items for user 963: SASRec 338.03, gSASRec 1.06, SASRec with sampled softmax
           152.3, BERT4Rec 1 (the paper)
Duration:  not measured; meant for a GPU
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

training = Training(batch_size=128, max_steps_per_epoch=256)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "SASRec": Trained(SASRec(), BCE(num_negatives=1), training),
        # The paper's setup says 64 negatives with t=0.5, its discussion 128. For a Precision@1 of 0.077, Theorem 1
        # gives 0.694 with 64 and 0.536 with 128, so the reported 0.57 fits 128. Both are trained.
        "gSASRec, k=64, t=0.5": Trained(SASRec(), GBCE(num_negatives=64, calibration=0.5), training),
        "gSASRec, k=128, t=0.5": Trained(SASRec(), GBCE(num_negatives=128, calibration=0.5), training),
        "gSASRec, k=256, t=1": Trained(SASRec(), GBCE(num_negatives=256, calibration=1.0), training),
        "SASRec-SSM, k=16": Trained(SASRec(), SampledSoftmax(num_negatives=16), training),
        "BERT4Rec": Trained(BERT4Rec(), Softmax(), replace(training, batch_size=64, max_steps_per_epoch=64)),
    },
)
