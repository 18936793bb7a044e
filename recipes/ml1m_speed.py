"""MovieLens-1M with the gSASRec paper's model sizes: speed of shared negatives, for the benchmark.

Run:       python -m evaluation.run recipes/ml1m_speed.py
Benchmark: python -m evaluation.benchmark recipes/ml1m_speed.py
Expected:  benchmark on two CPU cores: a step of gSASRec in 0.39 s, 7.1 times as fast as naive code; with shared
           negatives in 0.24 s, 12.8 times; BERT4Rec in 2.1 s, its output layer 13.3 times as fast as at all positions
Duration:  8 minutes for the benchmark; training was not tried (see ml1m_cpu.py)
"""

from dataclasses import replace

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE, Softmax
from aprec_like.models import BERT4Rec, SASRec
from aprec_like.negatives import Negatives
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

training = Training(batch_size=128, max_steps_per_epoch=256)
gbce = GBCE(num_negatives=256, calibration=0.75)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "gSASRec": Trained(SASRec(), gbce, training),
        "gSASRec-shared": Trained(SASRec(), gbce, training, Negatives(shared_by="batch")),
        "BERT4Rec": Trained(BERT4Rec(), Softmax(), replace(training, batch_size=64, max_steps_per_epoch=64)),
    },
)
