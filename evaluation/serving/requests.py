"""Requests in TF Serving's REST form: parsing, limits, and answers; whatever is wrong is one sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass

from aprec_like.errors import InputError
from aprec_like.types import Json
from evaluation.serving.served_model import ItemId, ServedModel

MAX_BODY_BYTES = 1 << 20
MAX_HISTORIES, MAX_LENGTH, MAX_K = 128, 5_000, 1_000


@dataclass(frozen=True)
class PredictRequest:
    """A request for recommendations.

    Args:
        histories: ids, oldest first.
        k: number of items.
        exclude_seen: whether items of the history are excluded.
        is_row_form: whether the answer is a list of rows (`predictions`) or of columns (`outputs`).
    """

    histories: list[list[ItemId]]
    k: int
    exclude_seen: bool
    is_row_form: bool


def parse_json(body: bytes) -> Json:
    """Return the object in the body of a request; raises `InputError` if it is none."""
    try:
        value = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError("the body must be JSON") from error
    if not isinstance(value, dict):
        raise InputError(f"the body must be a JSON object. Received: {type(value).__name__}")
    return value


def parse_predict(body: bytes, model: ServedModel) -> PredictRequest:
    """Parse a `:predict` request.

    Row form: `{"instances": [[id, ...], ...]}` or `{"instances": [{"items": [id, ...]}, ...]}`; column form:
    `{"inputs": {"items": [[id, ...], ...], "k": 10, "exclude_seen": true}}`. Histories may differ in length.
    """
    value = parse_json(body)
    if ("instances" in value) == ("inputs" in value):
        raise InputError('the body needs either "instances" (rows) or "inputs" (columns)')
    inputs = value.get("inputs", {})
    if "instances" in value:
        rows = value["instances"]
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            rows = [row.get("items") for row in rows]
    else:
        rows = inputs.get("items") if isinstance(inputs, dict) else inputs
        inputs = inputs if isinstance(inputs, dict) else {}
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_HISTORIES:
        raise InputError(f"a request needs a list of 1 to {MAX_HISTORIES} histories")
    k, exclude_seen = inputs.get("k", model.description["k"]), inputs.get("exclude_seen")
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= MAX_K:
        raise InputError(f"k must be a number from 1 to {MAX_K}")
    if exclude_seen is None:
        exclude_seen = bool(model.description["exclude_seen"])
    if not isinstance(exclude_seen, bool):
        raise InputError("exclude_seen must be true or false")
    return PredictRequest([parse_ids(row, model) for row in rows], k, exclude_seen, "instances" in value)


def parse_ids(row: object, model: ServedModel) -> list[ItemId]:
    """Return a list of ids; raises `InputError` for anything else."""
    if not isinstance(row, list) or len(row) > MAX_LENGTH:
        raise InputError(f"a history must be a list of at most {MAX_LENGTH} ids, oldest first")
    if model.has_numbers:
        if not all(isinstance(item, int) and not isinstance(item, bool) and abs(item) < 2**63 for item in row):
            raise InputError("the ids of this model are whole numbers")
    elif not all(isinstance(item, str) and _is_text(item) for item in row):
        raise InputError("the ids of this model are strings")
    return row


def _is_text(value: str) -> bool:
    """Return whether a string can be written as UTF-8, which lone surrogates cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in value)


def answer_predict(request: PredictRequest, model: ServedModel) -> Json:
    """Return the answer to a request, in its form."""
    rows = model.recommend(request.histories, request.k, request.exclude_seen)
    return (
        {"predictions": rows}
        if request.is_row_form
        else {"outputs": {name: [r[name] for r in rows] for name in rows[0]}}
    )


def answer_similarities(body: bytes, model: ServedModel) -> Json:
    """Return the cosines of `recommended` items with the `items` of a history, for the page."""
    value = parse_json(body)
    history, recommended = (parse_ids(value.get(name), model) for name in ("items", "recommended"))
    if len(history) * len(recommended) > MAX_LENGTH:
        raise InputError("too many items")
    return {"similarities": model.similarities(history, recommended) if history and recommended else []}
