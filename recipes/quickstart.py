"""SASRec, gSASRec and their baselines on simulated users, without a download, in minutes on two CPU cores.

Every network is trained with three seeds, so that the tests are about methods, not about single trainings. BERT4Rec is
not among them: only masked items are targets, and it takes ten times as many steps as the others (see ml1m_cpu.py).

Run:       python -m evaluation.run recipes/quickstart.py
Expected:  NDCG@10 SASRec-Softmax 0.302, gSASRec 0.296, SASRec 0.228, MF-BPR 0.040, Popularity 0.029; Markov chain
           0.319, because the simulated transitions are random and counting learns them best; Oracle 0.425, the best
           possible ranking
Duration:  6 minutes of processor time; 28 minutes on two CPU cores under eight times their load, not measured on quiet
           ones
"""

from aprec_like.datasets import Lengths, Simulated
from aprec_like.losses import BCE, Softmax
from aprec_like.metrics import NDCG, Recall
from aprec_like.models import MarkovChain, Oracle, Popularity, SASRec
from aprec_like.optimizers import Adam
from aprec_like.recipe import MFBPR, Choice, Evaluation, LogUniform, Recipe, Trained, Uniform, gSASRec
from aprec_like.training import EarlyStopping, Training

data = Simulated(num_users=6_000, num_items=2_000, lengths=Lengths(median=25, spread=0.5, minimum=8, maximum=100))
training = Training(
    batch_size=128,
    max_epochs=40,
    early_stopping=EarlyStopping(NDCG(10), patience=4),
    optimizer=Adam(learning_rate=3e-3),
)
architecture = {"max_length": 32, "embedding_dim": 64, "num_blocks": 2, "dropout_rate": 0.3}
space = {
    "learning_rate": LogUniform(1e-3, 1e-2),
    "dropout_rate": Uniform(0.0, 0.5),
    "max_length": Choice((16, 32, 64)),
}

recipe = Recipe(
    dataset=data,
    models={
        "Popularity": Popularity(),
        "Markov chain": MarkovChain(),
        "MF-BPR": MFBPR(embedding_dim=64, epochs=20),
        "SASRec-Softmax": Trained(SASRec(**architecture), Softmax(), training),
        "SASRec": Trained(SASRec(**architecture), BCE(num_negatives=1), training, prior_start=True),
        "gSASRec": gSASRec(training, num_negatives=64, calibration=0.75, prior_start=True, **architecture),
        "Oracle": Oracle(data),
    },
    groups={"unsampled": ("SASRec-Softmax",), "sampled": ("SASRec", "gSASRec")},
    evaluation=Evaluation(metrics=(Recall(1), Recall(10), NDCG(10))),
    seeds=(1, 2, 3),
    # For python -m evaluation.tune recipes/quickstart.py --trials 20
    spaces={
        "SASRec-Softmax": space,
        "SASRec": space,
        "gSASRec": {**space, "num_negatives": Choice((16, 64, 256)), "calibration": Uniform(0.0, 1.0)},
    },
)
