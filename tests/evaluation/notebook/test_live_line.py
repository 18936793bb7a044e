"""A line of progress is one line, in a terminal and in a notebook."""

import sys
from types import SimpleNamespace

import IPython.display
import pytest

from evaluation.notebook import live_line
from evaluation.notebook.live_line import NotebookLine, TerminalLine, make_live_line


def test_a_terminal_writes_over_the_last_text_as_long_as_it_was(capsys):
    line = TerminalLine()
    line.replace("epoch 10")
    line.replace("done")
    line.finish("end")
    line.replace("next")
    assert capsys.readouterr().out == "\repoch 10\rdone    \rend \n\rnext"


@pytest.fixture
def outputs(monkeypatch):
    """The outputs of a cell, as lists of the texts that each has had."""
    outputs = []

    def display(data, *, raw, display_id):
        assert raw and display_id
        outputs.append([data["text/plain"]])
        return SimpleNamespace(update=lambda data, raw, texts=outputs[-1]: texts.append(data["text/plain"]))

    monkeypatch.setattr(IPython.display, "display", display)
    return outputs


def test_a_notebook_updates_one_output_until_the_line_is_finished(outputs, monkeypatch):
    monkeypatch.setattr(live_line, "SECONDS_BETWEEN_UPDATES", 0.0)
    line = NotebookLine()
    line.replace("epoch 1")
    line.replace("epoch 2")
    line.finish("trained")
    line.replace("ranking")
    assert outputs == [["epoch 1", "epoch 2", "trained"], ["ranking"]]


def test_a_notebook_is_not_updated_at_every_step_but_always_at_the_end(outputs):
    line = NotebookLine()
    for step in range(5):
        line.replace(f"step {step}")
    line.finish("trained")
    assert outputs == [["step 0", "trained"]]


def test_the_kind_of_line_depends_on_the_kernel(monkeypatch):
    for shell, kind in ((SimpleNamespace(kernel=None), NotebookLine), (SimpleNamespace(), TerminalLine)):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert isinstance(make_live_line(), kind)
    monkeypatch.delitem(sys.modules, "IPython")
    assert isinstance(make_live_line(), TerminalLine)
