"""MovieLens-1M, RQ3: effect of the number of negatives k and of the calibration t (the gSASRec paper's Figure 3).

The report draws the grid, with a star where a cell differs significantly from k=1, t=0 (paired t-test, Bonferroni over
the other 24 cells), and gives the test value of the cell with the best validation value.

Run:       python -m evaluation.run recipes/ml1m_grid.py
           python -m evaluation.report results/ml1m_grid
           python -m evaluation.compare results/ml1m_grid --metric NDCG@10 --baseline "k=1, t=0" --correction bonferroni
Expected:  NDCG@10 0.126 at k=1, t=0 and 0.158 at k=1, t=1 (+25 %, significant); high values at k=256 for all t (the
           paper)
Duration:  not measured; meant for a GPU
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE
from aprec_like.models import SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

training = Training(batch_size=128, max_steps_per_epoch=256)

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        f"k={k}, t={t:g}": Trained(SASRec(), GBCE(num_negatives=k, calibration=t), training)
        for k in (1, 4, 16, 64, 256)
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    },
    # k=1, t=0 is SASRec, for which the paper's main table reports 0.131: two trainings of the same model.
    published={"k=1, t=0": {"NDCG@10": 0.126}, "k=1, t=1": {"NDCG@10": 0.158}},
)
