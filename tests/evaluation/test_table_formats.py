import shutil
import subprocess

import pytest

from evaluation.table import Entry, Table
from evaluation.table_formats import RENDERERS, as_latex

HOSTILE = "\\input{x} | **b** [l](javascript:x) <script> \x1b[2J & `c`"


def test_names_from_outside_are_text_in_every_format():
    table = Table("t", ["Model"], [[[HOSTILE]]], caption=HOSTILE, remarks=["first\nsecond", HOSTILE])
    text, markdown, latex = (render(table) for render in RENDERERS.values())
    for rendered in (text, markdown, latex):
        assert "\x1b" not in rendered
        assert not any(line.startswith("second") for line in rendered.splitlines())
    assert "<script>" not in markdown and " [l](" not in markdown and "**b**" not in markdown
    body = latex.split("\\toprule")[1]
    assert "\\input" not in body and r"\textbackslash{}input\{x\}" in body


def latex_of(fit="natural"):
    rows = [["A", Entry("-0.50", mark="*")], ["B", Entry("1.25", "best")], ["C", "-1 to 2"], ["k-2", ""]]
    return as_latex(Table("run 1", ["Model", "Value"], [rows], "Caption."), fit)


def test_latex_has_minus_signs_and_keeps_room_for_stars():
    lines = latex_of().splitlines()
    assert r"A & $-$0.50$^{*}$ \\" in lines
    assert r"B & \textbf{1.25}\phantom{$^{*}$} \\" in lines
    assert r"C & $-$1 to 2\phantom{$^{*}$} \\" in lines
    assert r"k-2 &  \\" in lines
    assert r"\label{tab:run-1}" in lines


def test_the_room_for_a_dagger_is_as_wide_as_a_dagger():
    rows = [["A", Entry("0.5", mark="†")], ["B", Entry("0.25")]]
    latex = as_latex(Table("run", ["Model", "Value"], [rows]))
    assert r"B & 0.25\phantom{$^\dagger$} \\" in latex.splitlines()


def test_latex_names_the_packages_and_fits_two_columns():
    assert r"% needs \usepackage{booktabs}" in latex_of().splitlines()
    column, page = latex_of("column"), latex_of("page")
    for text in (column, page):
        assert r"% needs \usepackage{booktabs}, \usepackage{graphicx}" in text.splitlines()
        assert text.count("{") == text.count("}")
    assert r"\begin{table}" in column and r"\columnwidth" in column
    assert r"\begin{table*}" in page and r"\end{table*}" in page and r"\textwidth" in page


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
@pytest.mark.slow
def test_wide_tables_compile_in_two_columns_without_an_overfull_box(tmp_path):
    header = ["Model", *(f"Recall@{k} (sampled)" for k in range(1, 12))]
    row = ["gSASRec with a long name", *(Entry("0.1234", mark="*", spread="0.0012") for _ in range(11))]
    texts = [as_latex(Table(f"t-{fit}", header, [[row]], "Caption."), fit) for fit in ("column", "page")]
    source = [
        r"\documentclass[twocolumn]{article}",
        r"\usepackage{booktabs,graphicx}",
        r"\begin{document}",
        *texts,
        r"\end{document}",
    ]
    (tmp_path / "paper.tex").write_text("\n".join(source))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    log = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "Overfull" not in log


def test_latex_numbers_stay_aligned_beside_spreads_and_their_marks_stay_beside_them():
    rows = [["A", Entry("0.25", mark="*")], ["B", Entry("0.50", "best", spread="0.01")], ["C", Entry("0.10")]]
    lines = as_latex(Table("t", ["Model", "NDCG"], [rows])).splitlines()
    spread = r"{\scriptsize$\pm$0.01}"
    assert rf"A & 0.25$^{{*}}$\phantom{{{spread}}} \\" in lines
    assert rf"B & \textbf{{0.50}}{spread}\phantom{{$^{{*}}$}} \\" in lines
    assert rf"C & 0.10\phantom{{$^{{*}}${spread}}} \\" in lines
