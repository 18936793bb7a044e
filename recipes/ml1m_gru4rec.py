"""MovieLens-1M on two CPU cores: GRU4Rec with modern losses beside SASRec with the same loss and sizes.

GRU4Rec (Hidasi et al., ICLR 2016; constrained embeddings as in Hidasi and Karatzoglou, CIKM 2018) and SASRec see the
same batches, losses and validation here. The authors train on sessions and do not report this file, so the recipe has
no published numbers.

Run:       python -m evaluation.run recipes/ml1m_gru4rec.py
Expected:  not measured
Duration:  not measured
"""

from aprec_like.datasets import MovieLens1M
from aprec_like.losses import GBCE, Softmax
from aprec_like.metrics import NDCG
from aprec_like.models import GRU4Rec, MarkovChain, Popularity, SASRec
from aprec_like.recipe import Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import EarlyStopping, Training

training = Training(batch_size=128, max_epochs=60, early_stopping=EarlyStopping(NDCG(10), patience=10))
gru4rec = GRU4Rec(max_length=100, embedding_dim=64, dropout_rate=0.2)
sasrec = SASRec(max_length=100, embedding_dim=64, dropout_rate=0.3)
gbce = GBCE(num_negatives=256, calibration=0.75)

recipe = Recipe(
    dataset=MovieLens1M(),
    split=LeaveOneOut(num_validation_users=None),
    models={
        "Popularity": Popularity(),
        "Markov chain": MarkovChain(),
        "GRU4Rec-Softmax": Trained(gru4rec, Softmax(), training),
        "GRU4Rec, gBCE": Trained(gru4rec, gbce, training, prior_start=True),
        "SASRec-Softmax": Trained(sasrec, Softmax(), training),
        "gSASRec": Trained(sasrec, gbce, training, prior_start=True),
    },
)
