"""MovieLens-1M in minutes on two CPU cores: a small SASRec with softmax, to see that training learns (a slow test).

Run:       python -m evaluation.run recipes/ml1m_short.py
Expected:  NDCG@10 above 0.12
Duration:  to be measured
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import Softmax
from aprec_like.models import Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.training import Training

recipe = Recipe(
    dataset=MovieLens1M(),
    models={
        "Popularity": Popularity(),
        "SASRec-Softmax": Trained(
            SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3),
            Softmax(),
            Training(batch_size=128, max_epochs=10),
        ),
    },
)
