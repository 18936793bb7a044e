"""Export of rankings, checked against ir_measures."""

import shutil

import ir_measures
import pytest

from aprec_like.errors import InputError
from evaluation.results.load import load_runs
from evaluation.results.trec import export_results


def test_ir_measures_agrees(ranked_run, exported):
    qrels = list(ir_measures.read_trec_qrels(str(exported / "qrels.txt")))
    measures = {"Recall@10": ir_measures.R @ 10, "NDCG@10": ir_measures.nDCG @ 10, "MRR": ir_measures.RR}
    runs = load_runs([ranked_run])
    for name in ("Good one", "Bad"):
        ranking = list(ir_measures.read_trec_run(str(exported / f"{name}.run")))
        judged = ir_measures.calc_aggregate(list(measures.values()), qrels, ranking)
        for metric, measure in measures.items():
            assert judged[measure] == pytest.approx(runs.find(name).per_user(metric).mean(), abs=1e-9)


def test_ids_with_white_space_cannot_be_exported(ranked_run, tmp_path):
    folder = ranked_run.model("Bad", 1)
    folder.write_per_user(folder.read_per_user().assign(user="a b"))
    folder.finish(seconds_to_best=1.0)
    shutil.rmtree(ranked_run.model("Good one", 1).path.parent)
    with pytest.raises(InputError, match="white space"):
        export_results(load_runs([ranked_run]), tmp_path / "trec")
