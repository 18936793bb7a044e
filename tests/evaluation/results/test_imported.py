"""Import of rankings and per-user metrics of other tools."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from aprec_like.errors import InputError
from evaluation import compare
from evaluation.analysis.comparison import compare_models
from evaluation.analysis.main_table import main_table
from evaluation.results.imported import import_results
from evaluation.results.load import load_runs
from evaluation.table_formats import as_latex

NUM_USERS, DEPTH, NUM_ITEMS = 300, 50, 200


def test_an_exported_ranking_is_imported_unchanged(ranked_run, exported):
    runs = load_runs([ranked_run])
    for name in ("Good one", "Bad"):
        imported = import_results(exported / f"{name}.run", runs)
        assert imported.name == f"{name} (imported)"
        for metric in runs.metrics:
            np.testing.assert_allclose(imported.per_user(metric), runs.find(name).per_user(metric), atol=1e-12)


def test_csv_with_scores_or_ranks_and_per_user_metrics(ranked_run, exported, tmp_path):
    runs = load_runs([ranked_run])
    top = runs.find("Bad").folders[0].read_top_items()
    expected = runs.find("Bad").per_user("NDCG@10")
    shuffled = top.sample(frac=1, random_state=1)
    shuffled[["user", "item", "score"]].to_csv(tmp_path / "scores.csv", index=False)
    shuffled.rename(columns={"position": "rank"})[["user", "item", "rank"]].to_csv(tmp_path / "ranks.csv", index=False)
    runs.find("Bad").folders[0].read_per_user().sample(frac=1).to_csv(tmp_path / "metrics.csv", index=False)
    runs.find("Bad").folders[0].read_per_user().to_parquet(tmp_path / "metrics.parquet")
    for name in ("scores.csv", "ranks.csv", "metrics.csv", "metrics.parquet"):
        imported = import_results(tmp_path / name, runs)
        np.testing.assert_allclose(imported.per_user("NDCG@10"), expected, atol=1e-12)
        assert imported.name == name.split(".")[0]


def test_ties_count_half_and_a_target_outside_the_list_is_a_miss(ranked_run, tmp_path):
    runs = load_runs([ranked_run], ["MRR"])
    cases = runs.cases
    others = (cases["target"] + 5) % NUM_ITEMS
    rows = list(zip(cases["user"], cases["target"], others, strict=True))
    lines = [f"{user} Q0 {target} 1 0.5 mine\n{user} Q0 {other} 2 0.5 mine\n" for user, target, other in rows[1:]]
    lines.append(f"{rows[0][0]} Q0 {rows[0][2]} 1 9 mine\n")
    (tmp_path / "mine.run").write_text("".join(lines))
    imported = import_results(tmp_path / "mine.run", runs)
    assert imported.name == "mine"
    assert imported.per_user("MRR")[0] == 0
    np.testing.assert_allclose(imported.per_user("MRR")[1:], 1 / 1.5)
    assert [caveat.sentence for caveat in imported.caveats] == [
        "MRR counts targets outside its lists of 1 to 2 items as misses"
    ]


@pytest.fixture
def top(ranked_run):
    """The rankings of the model "Bad" as another tool would write them."""
    frame = ranked_run.model("Bad", 1).read_top_items()
    return frame[["user", "item", "position"]].rename(columns={"position": "rank"})


def with_seen_items_first(run, top):
    """Return rankings with the two seen items of every user before all others."""
    histories = run.read_histories()
    users = run.model("Bad", 1).read_per_user()["user"].to_numpy()
    seen = pd.DataFrame({"user": users[histories["case"]], "item": histories["item"], "rank": -1})
    return pd.concat([seen, top])


def test_seen_items_are_removed_and_row_and_caption_say_so(ranked_run, top, tmp_path):
    with_seen_items_first(ranked_run, top).to_csv(tmp_path / "theirs.csv", index=False)
    runs = load_runs([ranked_run], ["NDCG@10"])
    imported = import_results(tmp_path / "theirs.csv", runs)
    np.testing.assert_allclose(imported.per_user("NDCG@10"), runs.find("Bad").per_user("NDCG@10"), atol=1e-12)
    latex = as_latex(main_table(compare_models(replace(runs, models=[*runs.models, imported]))))
    assert "theirs (seen items removed) &" in latex
    assert r"theirs: 600 seen items (3.8\%) removed from its rankings" in latex


def test_seen_items_that_leave_too_few_others_are_refused(ranked_run, top, tmp_path):
    with_seen_items_first(ranked_run, top[top["rank"] <= 9]).to_csv(tmp_path / "theirs.csv", index=False)
    with pytest.raises(InputError, match="without them 300 of 300 users have fewer than 10 items, too few for"):
        import_results(tmp_path / "theirs.csv", load_runs([ranked_run]))


def test_seen_items_stay_where_the_run_includes_them(ranked_run, top, tmp_path):
    with_seen_items_first(ranked_run, top).to_csv(tmp_path / "theirs.csv", index=False)
    ranked_run.write_recipe(b"", ranked_run.read_recipe() | {"evaluation": {"exclude_seen": False}})
    imported = import_results(tmp_path / "theirs.csv", load_runs([ranked_run], ["Recall@1"]))
    assert imported.per_user("Recall@1").sum() == 0 and not imported.caveats


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda item: f"x{item}", "15,000 of 15,000 rows .100.0%. are unknown$"),
        (lambda item: f"{item}.0", "are unknown; whole numbers became decimals"),
        (lambda item: f"{item} ", "are unknown; white space was added"),
        (lambda item: "999" if item == 7 else item, "Received: '999'; .* rows .0.[0-9]%. are unknown$"),
    ],
)
def test_items_outside_the_catalogue_are_refused(ranked_run, top, tmp_path, change, message):
    top.assign(item=top["item"].map(change)).to_csv(tmp_path / "theirs.csv", index=False)
    with pytest.raises(InputError, match=message):
        import_results(tmp_path / "theirs.csv", load_runs([ranked_run]))


def test_lost_leading_zeros_are_recognised_in_items_and_users(ranked_run, top, tmp_path):
    dataset = ranked_run.read_dataset()
    ranked_run.write_items(pd.DataFrame({"item": [f"{item:03}" for item in range(NUM_ITEMS)], "count": 1}))
    ranked_run.write_dataset(dataset)
    top.to_csv(tmp_path / "theirs.csv", index=False)
    with pytest.raises(InputError, match="leading zeros were lost"):
        import_results(tmp_path / "theirs.csv", load_runs([ranked_run]))
    for name in ("Bad", "Good one"):
        folder = ranked_run.model(name, 1)
        folder.write_per_user(folder.read_per_user().assign(user=[f"{user:05}" for user in range(NUM_USERS)]))
        folder.finish(seconds_to_best=1.0)
    top.assign(user=top["user"].str[1:]).to_csv(tmp_path / "theirs.csv", index=False)
    with pytest.raises(InputError, match="lacks the run's users: 300 of them, such as 00000; leading zeros were lost"):
        import_results(tmp_path / "theirs.csv", load_runs([ranked_run]))


def test_lists_shorter_than_a_cutoff_are_refused_or_counted(ranked_run, top, tmp_path):
    top[top["rank"] <= 5].to_csv(tmp_path / "five.csv", index=False)
    with pytest.raises(InputError, match=r"Recall@10 needs 10 items per user\. Received: at most 5"):
        import_results(tmp_path / "five.csv", load_runs([ranked_run]))
    assert not import_results(tmp_path / "five.csv", load_runs([ranked_run], ["Recall@1"])).caveats
    top[(top["rank"] <= 5) | (top["user"] > "u2")].to_csv(tmp_path / "some.csv", index=False)
    caveat = import_results(tmp_path / "some.csv", load_runs([ranked_run], ["NDCG@10"])).caveats[0]
    num_short = sum(user <= "u2" for user in top["user"].unique())
    assert caveat.sentence.startswith(f"{num_short} of 300 users have fewer than 10 items listed")


def test_a_list_of_all_unseen_items_is_not_short(ranked_run, tmp_path):
    rows = [(f"u{user}", item, item) for user in range(NUM_USERS) for item in range(NUM_ITEMS)]
    pd.DataFrame(rows, columns=["user", "item", "rank"]).to_parquet(tmp_path / "all.parquet")
    imported = import_results(tmp_path / "all.parquet", load_runs([ranked_run]))
    assert [caveat.mark for caveat in imported.caveats] == ["seen items removed"]
    assert (imported.per_user("MRR") > 0).all()


def test_a_published_folder_without_the_catalogue_gives_a_caveat(ranked_run, top, tmp_path):
    (ranked_run.path / "items.parquet").unlink()
    top.to_csv(tmp_path / "theirs.csv", index=False)
    runs = load_runs([ranked_run], ["NDCG@10"])
    imported = import_results(tmp_path / "theirs.csv", runs)
    assert [caveat.mark for caveat in imported.caveats] == ["not checked"]
    np.testing.assert_allclose(imported.per_user("NDCG@10"), runs.find("Bad").per_user("NDCG@10"), atol=1e-12)
    top.assign(item="x").drop_duplicates("user").to_csv(tmp_path / "theirs.csv", index=False)
    with pytest.raises(InputError, match="are unknown"):
        import_results(tmp_path / "theirs.csv", runs)


def test_given_values_have_a_caveat_and_must_be_shares(ranked_run, tmp_path):
    runs = load_runs([ranked_run])
    values = ranked_run.model("Bad", 1).read_per_user()
    values.to_csv(tmp_path / "theirs.csv", index=False)
    assert [caveat.mark for caveat in import_results(tmp_path / "theirs.csv", runs).caveats] == ["values as given"]
    values.assign(MRR=100 * values["MRR"]).to_csv(tmp_path / "theirs.csv", index=False)
    with pytest.raises(InputError, match="MRR must lie between 0 and 1"):
        import_results(tmp_path / "theirs.csv", runs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[DEPTH:], "lacks the run's users: 1 of them, such as u0"),
        (lambda lines: [*lines, "stranger Q0 1 1 1 x"], "has others than the run's users: 1 of them, such as stranger"),
        (lambda lines: [*lines, lines[0]], "an item once per user. Received: user u0"),
        (lambda lines: [line.replace(" Q0", "") for line in lines], "6 columns"),
        (lambda lines: [lines[0].replace(lines[0].split()[4], "nan"), *lines[1:]], "score must be finite"),
        (lambda lines: [], "cannot be read"),
    ],
)
def test_files_that_do_not_fit_are_refused(ranked_run, exported, tmp_path, change, message):
    lines = (exported / "Bad.run").read_text().splitlines()
    (tmp_path / "broken.run").write_text("\n".join(change(lines)))
    with pytest.raises(InputError, match=message):
        import_results(tmp_path / "broken.run", load_runs([ranked_run]))


def test_the_command_puts_an_import_in_the_same_tested_table(ranked_run, exported, monkeypatch, capsys):
    arguments = [str(ranked_run.path), "--import", str(exported / "Bad.run"), "--metric", "NDCG@10", "--format", "json"]
    monkeypatch.setattr("sys.argv", ["compare", *arguments])
    assert compare.run_command(compare.main) == 0
    out = capsys.readouterr().out
    assert '"Bad (imported)"' in out and '"family_size": 3' in out
    assert "Imported results are one training: Bad (imported)" in out
