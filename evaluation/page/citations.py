"""Whom to cite for what a recipe uses: BibTeX by the names of classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

ENTRIES = {
    "petrov2023gsasrec": """@inproceedings{petrov2023gsasrec,
  title     = {{gSASRec}: Reducing Overconfidence in Sequential Recommendation Trained with Negative Sampling},
  author    = {Petrov, Aleksandr Vladimirovich and Macdonald, Craig},
  booktitle = {Proceedings of the 17th ACM Conference on Recommender Systems},
  year      = {2023},
  pages     = {116--128},
  doi       = {10.1145/3604915.3608783}
}""",
    "kang2018sasrec": """@inproceedings{kang2018sasrec,
  title     = {Self-Attentive Sequential Recommendation},
  author    = {Kang, Wang-Cheng and McAuley, Julian},
  booktitle = {2018 IEEE International Conference on Data Mining (ICDM)},
  year      = {2018},
  pages     = {197--206},
  doi       = {10.1109/ICDM.2018.00035}
}""",
    "sun2019bert4rec": """@inproceedings{sun2019bert4rec,
  title     = {{BERT4Rec}: Sequential Recommendation with Bidirectional Encoder Representations from Transformer},
  author    = {Sun, Fei and Liu, Jun and Wu, Jian and Pei, Changhua and Lin, Xiao and Ou, Wenwu and Jiang, Peng},
  booktitle = {Proceedings of the 28th ACM International Conference on Information and Knowledge Management},
  year      = {2019},
  pages     = {1441--1450},
  doi       = {10.1145/3357384.3357895}
}""",
    "rendle2009bpr": """@inproceedings{rendle2009bpr,
  title     = {{BPR}: {Bayesian} Personalized Ranking from Implicit Feedback},
  author    = {Rendle, Steffen and Freudenthaler, Christoph and Gantner, Zeno and Schmidt-Thieme, Lars},
  booktitle = {Proceedings of the 25th Conference on Uncertainty in Artificial Intelligence},
  year      = {2009},
  pages     = {452--461}
}""",
    "koren2009matrix": """@article{koren2009matrix,
  title   = {Matrix Factorization Techniques for Recommender Systems},
  author  = {Koren, Yehuda and Bell, Robert and Volinsky, Chris},
  journal = {Computer},
  volume  = {42},
  number  = {8},
  year    = {2009},
  pages   = {30--37},
  doi     = {10.1109/MC.2009.263}
}""",
    "bengio2008adaptive": """@article{bengio2008adaptive,
  title   = {Adaptive Importance Sampling to Accelerate Training of a Neural Probabilistic Language Model},
  author  = {Bengio, Yoshua and Sen{\\'e}cal, Jean-S{\\'e}bastien},
  journal = {IEEE Transactions on Neural Networks},
  volume  = {19},
  number  = {4},
  year    = {2008},
  pages   = {713--722},
  doi     = {10.1109/TNN.2007.912312}
}""",
    "harper2015movielens": """@article{harper2015movielens,
  title   = {The {MovieLens} Datasets: History and Context},
  author  = {Harper, F. Maxwell and Konstan, Joseph A.},
  journal = {ACM Transactions on Interactive Intelligent Systems},
  volume  = {5},
  number  = {4},
  year    = {2015},
  doi     = {10.1145/2827872}
}""",
    "mcauley2015image": """@inproceedings{mcauley2015image,
  title     = {Image-Based Recommendations on Styles and Substitutes},
  author    = {McAuley, Julian and Targett, Christopher and Shi, Qinfeng and van den Hengel, Anton},
  booktitle = {Proceedings of the 38th International ACM SIGIR Conference on Research and Development in Information
               Retrieval},
  year      = {2015},
  pages     = {43--52},
  doi       = {10.1145/2766462.2767755}
}""",
    "cho2011friendship": """@inproceedings{cho2011friendship,
  title     = {Friendship and Mobility: User Movement in Location-Based Social Networks},
  author    = {Cho, Eunjoon and Myers, Seth A. and Leskovec, Jure},
  booktitle = {Proceedings of the 17th ACM SIGKDD International Conference on Knowledge Discovery and Data Mining},
  year      = {2011},
  pages     = {1082--1090},
  doi       = {10.1145/2020408.2020579}
}""",
}

WORKS = {
    "SASRec": ("kang2018sasrec",),
    "BERT4Rec": ("sun2019bert4rec",),
    "MatrixFactorisation": ("koren2009matrix",),
    "GBCE": ("petrov2023gsasrec",),
    "BPR": ("rendle2009bpr",),
    "SampledSoftmax": ("bengio2008adaptive",),
    "MovieLens1M": ("harper2015movielens", "kang2018sasrec"),
    "MovieLens": ("harper2015movielens",),
    "Steam": ("kang2018sasrec", "sun2019bert4rec"),
    "Beauty": ("mcauley2015image", "sun2019bert4rec"),
    "AmazonVideo": ("mcauley2015image", "kang2018sasrec"),
    "Gowalla": ("cho2011friendship",),
}
"""Works behind a model, a loss or a dataset; for a dataset also those whose version of it is used."""


def works_of(settings: dict[str, Any]) -> list[str]:
    """Keys of the works behind everything that settings, as recipe.json has them, mention; in the order above."""
    used = {key for name in _classes(settings) for key in WORKS.get(name, ())}
    return [key for key in ENTRIES if key in used]


def bibtex_of(settings: dict[str, Any]) -> str:
    """The BibTeX of these works."""
    return "\n\n".join(ENTRIES[key] for key in works_of(settings))


def _classes(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(name := value.get("class"), str):
            yield name
        for item in value.values():
            yield from _classes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _classes(item)
