from evaluation.table import Table
from evaluation.table_formats import RENDERERS

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
