"""Steam, RQ2: predicted probabilities and observed precision (the gSASRec paper's Figure 2), with two learning rates.

Every model is trained with both learning rates of steam_gsasrec.py: which of them the paper used is not certain.

Run:       python -m evaluation.run recipes/steam_overconfidence.py
           python -m evaluation.report results/steam_overconfidence
Expected:  SASRec predicts about 1 at every rank below 100; gSASRec with t=1 follows precision closely, and all models
           follow Theorem 1 (the paper, which gives no values for Steam)
Duration:  not measured; meant for a GPU
"""

from dataclasses import replace

from aprec_like.datasets import Steam
from aprec_like.losses import BCE, GBCE, SampledSoftmax, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

training = Training(batch_size=128, max_steps_per_epoch=256)
slow_adam = Adam(learning_rate=1e-4)  # most likely the paper's, see steam_gsasrec.py
models = {
    "SASRec": Trained(SASRec(), BCE(num_negatives=1), training),
    # 64 or 128 negatives with t=0.5: see ml1m_overconfidence.py.
    "gSASRec, k=64, t=0.5": Trained(SASRec(), GBCE(num_negatives=64, calibration=0.5), training),
    "gSASRec, k=128, t=0.5": Trained(SASRec(), GBCE(num_negatives=128, calibration=0.5), training),
    "gSASRec, k=256, t=1": Trained(SASRec(), GBCE(num_negatives=256, calibration=1.0), training),
    "SASRec-SSM, k=16": Trained(SASRec(), SampledSoftmax(num_negatives=16), training),
    "BERT4Rec": Trained(BERT4Rec(), Softmax(), replace(training, batch_size=64, max_steps_per_epoch=64)),
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
)
