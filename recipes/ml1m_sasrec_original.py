"""MovieLens-1M: SASRec with the settings and the evaluation of its authors (Kang and McAuley, ICDM 2018).

The last item of every user is the test target, and the item before it is excluded from training. The paper ranks the
target among 100 sampled items, which gives the columns marked (sampled); the others rank the whole catalogue.

Run:       python -m evaluation.run recipes/ml1m_sasrec_original.py
Expected:  Recall@10 (sampled) 0.8245, NDCG@10 (sampled) 0.5905 (the SASRec paper, which calls Recall@10 Hit@10);
           measured after 63 of 201 epochs: 0.8071 and 0.5648, and NDCG@10 0.1108 over the whole catalogue
Duration:  32 minutes for 63 epochs on two busy CPU cores
"""

from aprec_like.candidates import UniformCandidates
from aprec_like.datasets import MovieLens1M
from aprec_like.losses import BCE
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import ORIGINAL_FLAVOUR, Popularity, SASRec
from aprec_like.negatives import Negatives
from aprec_like.optimizers import Adam
from aprec_like.recipe import Evaluation, Recipe, Trained
from aprec_like.splits import LeaveOneOut
from aprec_like.training import Training

recipe = Recipe(
    dataset=MovieLens1M(),
    split=LeaveOneOut(num_validation_users=6_040),
    models={
        "Popularity": Popularity(),
        "SASRec": Trained(
            SASRec(max_length=200, embedding_dim=50, dropout_rate=0.2, flavour=ORIGINAL_FLAVOUR),
            BCE(num_negatives=1, is_averaged=False),
            Training(
                batch_size=128,
                max_epochs=201,
                early_stopping=None,
                optimizer=Adam(learning_rate=1e-3, beta_2=0.98, epsilon=1e-8),
                with_replacement=True,
            ),
            Negatives(reject_history=True),
        ),
    },
    evaluation=Evaluation(metrics=(Recall(10), NDCG(10)), candidates=UniformCandidates(100)),
    published={"SASRec": {"Recall@10 (sampled)": 0.8245, "NDCG@10 (sampled)": 0.5905}},
)
