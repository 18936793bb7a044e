"""What a fuzzer calls: one function per reader of files from outside; any exception but `InputError` is a finding.

    pip install -e ".[fuzz]"
    python -m tests.fuzz.readers csv -max_total_time=300

Options after the name are libFuzzer's. `tests/fuzz/corpus/<reader>/` has small files to start from, which the tests
read too.
"""

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))


def _instrumented():
    """Import the readers, with atheris if it is installed, so that it knows which branches an input takes."""
    try:
        import atheris
    except ImportError:
        return contextlib.nullcontext()
    return atheris.instrument_imports(include=["aprec_like", "evaluation"])


with _instrumented() if __name__ == "__main__" else contextlib.nullcontext():
    import numpy as np

    from aprec_like.datasets import AtomicFile, CSVFile, SequenceFile, TextFile
    from aprec_like.datasets.cache import load_interactions, save_interactions
    from aprec_like.datasets.local_files import reading
    from aprec_like.errors import InputError
    from aprec_like.interactions import Interactions
    from evaluation.results import imported
    from evaluation.results.files import write_sealed_json
    from evaluation.results.store import RunFolder

KNOWN = Interactions.from_ids(np.array(["a", "a", "b"], object), np.array([3, 4, 3]))


def _written(name: str, content: bytes) -> Path:
    path = FOLDER / name
    path.write_bytes(content)
    return path


def _read_dataset(dataset, content: bytes) -> None:
    path = _written(dataset.path, content)
    with reading(path):
        interactions = dataset._read(path)
    assert len(interactions.items) == interactions.offsets[-1]
    assert interactions.items.max() < len(interactions.item_ids)


def read_text(content: bytes) -> None:
    _read_dataset(TextFile("a.txt"), content)


def read_sequences(content: bytes) -> None:
    _read_dataset(SequenceFile("b.txt"), content)


def read_csv(content: bytes) -> None:
    _read_dataset(CSVFile("a.csv", user="user", item="item", timestamp="time", rating="rating"), content)


def read_atomic(content: bytes) -> None:
    _read_dataset(AtomicFile("a.inter"), content)


def read_trec(content: bytes) -> None:
    imported._read(_written("a.run", content))


def read_recipe_json(content: bytes) -> None:
    """The content is sealed first, so that the schema is reached and not only the checksum."""
    path = FOLDER / "recipe.json"
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(content)
        if isinstance(value, dict):
            write_sealed_json(path, "recipe", value)
            RunFolder(FOLDER).read_recipe()
            return
    path.write_bytes(content)
    RunFolder(FOLDER).read_recipe()


def read_cache(content: bytes) -> None:
    """A cache file is the one that was written, or an exception, after which the source is read again."""
    path = _written("a.arrays", content)
    try:
        loaded = load_interactions(path)
    except Exception:
        return
    assert loaded.digest() == KNOWN.digest() and loaded.user_ids.tolist() == KNOWN.user_ids.tolist()


READERS: dict[str, Callable[[bytes], None]] = {
    "text": read_text,
    "sequences": read_sequences,
    "csv": read_csv,
    "atomic": read_atomic,
    "trec": read_trec,
    "recipe_json": read_recipe_json,
    "cache": read_cache,
}


def read(reader: str, content: bytes) -> str:
    """Return "read" or "refused"; any other exception is a finding."""
    try:
        READERS[reader](content)
    except InputError as error:
        assert "\n" not in str(error) or reader in ("csv", "atomic", "trec"), error  # `run_command` makes it one line
        return "refused"
    return "read"


if __name__ == "__main__":
    import atheris

    name = sys.argv.pop(1)
    if name == "cache":
        save_interactions(KNOWN, CORPUS / "cache" / "whole.arrays")
    found = FOLDER / "corpus"
    found.mkdir()
    atheris.Setup([*sys.argv, str(found), str(CORPUS / name)], lambda content: read(name, content) and None)
    atheris.Fuzz()
