"""MovieLens-1M on two CPU cores, RQ3: effect of the number of negatives k and of the calibration t, smaller models.

The grid of the gSASRec paper's Figure 3 with the network of ml1m_cpu.py (histories of 100 items, 64 dimensions, dropout
0.3, `prior_start`). The paper's values are a reference, not the expected result.

Run:       python -m evaluation.run recipes/ml1m_cpu_grid.py
           python -m evaluation.report results/ml1m_cpu_grid
Expected:  not measured; in the paper NDCG@10 rises from k=1, t=0 to k=1, t=1 by 25 %, and is high at k=256 for all t
Duration:  not measured; about 100 minutes on two CPU cores, from the times of ml1m_cpu.py
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE
from aprec_like.metrics import NDCG
from aprec_like.models import SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=60, early_stopping=EarlyStopping(NDCG(10), patience=10))
sasrec = SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        f"k={k}, t={t:g}": Trained(sasrec, GBCE(num_negatives=k, calibration=t), training, prior_start=True)
        for k in (1, 4, 16, 64, 256)
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    },
    published={"k=1, t=0": {"NDCG@10": 0.126}, "k=1, t=1": {"NDCG@10": 0.158}},
    known_differences=dict.fromkeys(
        ("k=1, t=0", "k=1, t=1"), "a smaller network with shorter histories, trained for at most 60 epochs"
    ),
)
