"""Export as an ONNX model on item numbers; items.csv beside it has their ids and titles."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError, first_line
from aprec_like.interactions import PADDING, Histories, offsets_from_lengths
from aprec_like.types import Array, Json, Tensor
from evaluation.cli import import_extra
from evaluation.inference.catalogue_scores import catalogue_scores
from evaluation.inference.exported import Answer, Exported, ExportSource
from evaluation.inference.recommender import TopItems

MODEL = "model.onnx"
OPSET = 18
MAX_BYTES = 2**31
"""Size of the largest file that protobuf, ONNX's format, can hold."""
INPUTS = (
    tf.TensorSpec([None, None], tf.int32, "items"),
    tf.TensorSpec([], tf.int32, "k"),
    tf.TensorSpec([], tf.bool, "exclude_seen"),
)


def write_onnx(source: ExportSource, folder: Path) -> Json:
    """Write model.onnx; returns what export.json says about it."""
    tf2onnx = import_extra("tf2onnx", "onnx")
    import_extra("onnxruntime", "onnx")
    scores = catalogue_scores(source.scorer, len(source.catalogue))
    num_bytes = sum(variable.shape.num_elements() * variable.dtype.size for variable in scores.variables)
    if num_bytes >= MAX_BYTES:
        raise InputError(f"the model has {num_bytes / 2**30:.1f} GiB, an ONNX file at most 2; export a SavedModel")
    top_items = TopItems(scores, source.probability, chunk_items=None)

    @tf.function(input_signature=INPUTS)
    def recommend(items: Tensor, k: Tensor, exclude_seen: Tensor) -> dict[str, Tensor]:
        return top_items(items, k, exclude_seen)

    (folder / MODEL).write_bytes(_convert(tf2onnx, recommend.get_concrete_function()).SerializeToString())
    outputs = ["top_items", "scores", *(["probabilities"] if source.probability else [])]
    return {"inputs": [spec.name for spec in INPUTS], "outputs": outputs, "padding": PADDING, "opset": OPSET}


def _convert(tf2onnx: Any, function: Any) -> Any:
    """Return a concrete function as an ONNX model.

    `tf2onnx.convert` would also optimise it and, in version 1.17, merge two reshapes into a wrong one, on some runs and
    not on others; ONNX Runtime optimises what it loads itself.
    """
    inputs = [tensor.name for tensor in function.inputs if tensor.dtype != tf.resource]
    outputs = [tensor.name for tensor in function.outputs]
    names = dict(zip(inputs, (spec.name for spec in INPUTS), strict=True))
    names |= dict(zip(outputs, sorted(function.structured_outputs), strict=True))
    logging.getLogger("tensorflow").setLevel(logging.ERROR)  # it warns of collections, which ONNX does not have
    frozen = tf2onnx.tf_loader.from_function(function, inputs, outputs)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(frozen, name="")
        converted = tf2onnx.tfonnx.process_tf_graph(
            graph,
            opset=OPSET,
            input_names=inputs,
            output_names=outputs,
            tensors_to_rename=names,
            custom_op_handlers={"Erfc": (_convert_erfc, [])},
        )
    model, onnx = converted.make_model("recommend"), import_extra("onnx", "onnx")
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise InputError(f"the model cannot be written as ONNX: {first_line(error)}") from error
    return model


def _convert_erfc(graph: Any, node: Any, *_: Any) -> None:
    """Write erfc(x), of which TensorFlow's GELU is made and which ONNX lacks, as 1 - erf(x)."""
    graph.remove_node(node.name)
    one = graph.make_const(f"{node.name}__one", np.ones([], np.float32)).output[0]
    erf = graph.make_node("Erf", [node.input[0]]).output[0]
    graph.make_node("Sub", [one, erf], outputs=node.output, name=node.name)


def load_onnx(source: ExportSource, folder: Path) -> Exported:
    """Load the model with ONNX Runtime, to be checked."""
    session = import_extra("onnxruntime", "onnx").InferenceSession(str(folder / MODEL))
    names = [output.name for output in session.get_outputs()]

    def answer(users: Sequence[Array]) -> Answer:
        lengths = np.array([len(user) for user in users])
        items = Histories(np.concatenate(users), offsets_from_lengths(lengths)).last(max(1, lengths.max()))
        inputs = {"items": items, "k": np.array(source.k, np.int32), "exclude_seen": np.array(source.exclude_seen)}
        found = dict(zip(names, session.run(names, inputs), strict=True))
        return Answer(found["top_items"], found["scores"], found.get("probabilities"))

    return answer
