"""Arrays computed by the original implementations beside those of our networks with the same weights and inputs."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from aprec_like.errors import InputError
from aprec_like.interactions import MASK, PADDING, Histories
from aprec_like.losses import BCE, GBCE, FullLoss, SampledLoss, Softmax
from aprec_like.losses.chunked_sampled import sampled_loss_sum
from aprec_like.models import BERT4Rec, Flavour, Network, SASRec
from aprec_like.models.bert4rec import NUM_SPECIAL_ROWS
from aprec_like.ranking.rank_catalogue import NetworkScorer
from aprec_like.types import Array, Tensor

Vectors = dict[str, Array]
"""Arrays of a file by name: weights, inputs, and expected states, scores, losses and gradients."""


def read_vectors(path: Path) -> Vectors:
    """Read the arrays of a file; raises `InputError` unless they are of a SASRec or a BERT4Rec network."""
    try:
        with np.load(path, allow_pickle=False) as file:
            vectors = dict(file)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: cannot be read as .npz: {error}") from error
    if not {"item_embedding", "word_embedding"} & set(vectors):
        raise InputError(f"{path}: is not a file of vectors (it has neither item_embedding nor word_embedding)")
    return vectors


def relative_error(ours: Array, theirs: Array) -> float:
    """Return the largest absolute difference, relative to the largest expected value; infinite for other shapes."""
    if ours.shape != theirs.shape:
        return float("inf")
    return float(np.max(np.abs(ours - theirs)) / max(float(np.max(np.abs(theirs))), 1e-30))


def compare_arrays(expected: Vectors) -> Iterator[tuple[str, Array, Array]]:
    """Yield name, our array and the original's for everything that a file expects."""
    return compare_bert4rec(expected) if "word_embedding" in expected else compare_sasrec(expected)


def compare_bert4rec(expected: Vectors) -> Iterator[tuple[str, Array, Array]]:
    """Yield the hidden states of all positions, and the scores at the last position."""
    network = build_bert4rec(expected)
    tokens = expected["input_tokens"]
    items = np.where(tokens == expected["pad_token"], PADDING, np.where(tokens == expected["mask_token"], MASK, tokens))
    states = network(items.astype(np.int32))
    yield "hidden_states", states.numpy(), expected["hidden_states"]
    yield "scores", tf.matmul(states[:, -1], network.item_table, transpose_b=True).numpy(), expected["scores"]


def compare_sasrec(expected: Vectors) -> Iterator[tuple[str, Array, Array]]:
    """Yield states, scores, losses, and the gradients of each loss.

    A file without an output table is of the original SASRec, whose loss is the sum of its two terms.
    """
    network = build_sasrec(expected)
    is_item = expected["input_items"] >= 0
    yield "states", network(expected["input_items"].astype(np.int32)).numpy()[is_item], expected["states"][is_item]
    history = expected["history"]
    is_history_item = history >= 0
    offsets = np.concatenate([[0], np.cumsum(is_history_item.sum(axis=1))])
    histories = Histories(history[is_history_item].astype(np.int32), offsets)
    yield "scores", NetworkScorer(network).score(histories).numpy(), expected["scores"]
    num_negatives = expected["negative_items"].shape[-1]
    variables = {name.replace("/", "_"): variable for name, variable in named_variables(network).items()}
    for loss_name in [name for name in expected if name.split("/")[0] == "loss"]:
        kind = loss_name.removeprefix("loss").removeprefix("/")
        with tf.GradientTape() as tape:
            value = mean_loss(network, named_loss(kind, num_negatives), expected)
        yield loss_name, value.numpy(), expected[loss_name]
        names = [name for name in expected if name.startswith("grad_") and name.partition("/")[2] == kind]
        grads = tape.gradient(value, [variables[name.removeprefix("grad_").split("/")[0]].value for name in names])
        for name, grad in zip(names, grads, strict=True):
            theirs = expected[name]
            yield name, tf.convert_to_tensor(grad).numpy()[: len(theirs)], theirs


def named_loss(kind: str, num_negatives: int) -> SampledLoss | FullLoss:
    """Return the loss that a file names `softmax`, `t0.75` (gBCE with t = 0.75) or "" (the original SASRec's BCE)."""
    if kind == "softmax":
        return Softmax()
    return GBCE(num_negatives, float(kind.removeprefix("t"))) if kind else BCE(num_negatives, is_averaged=False)


def mean_loss(network: Network, loss: SampledLoss | FullLoss, expected: Vectors) -> Tensor:
    """Return the mean loss over positions with an input and a target, with the negatives of the file."""
    items, targets = (expected[name].astype(np.int32) for name in ("input_items", "target_items"))
    is_target = (items >= 0) & (targets >= 0)
    states, targets = tf.boolean_mask(network(items), is_target), targets[is_target]
    if not isinstance(loss, SampledLoss):
        return tf.reduce_mean(loss(states, network.item_table, targets))
    negatives = np.maximum(expected["negative_items"], 0).astype(np.int32)[is_target]
    candidates = tf.constant(np.column_stack([targets, negatives]))
    weights = tf.fill([len(targets)], 1 / len(targets))
    return sampled_loss_sum(loss, states, network.score_table, candidates, weights, network.num_items)


def build_sasrec(vectors: Vectors) -> Network:
    """Build a SASRec network with the weights of a file."""
    is_original = "output_embedding" not in vectors
    num_items, dim = vectors["item_embedding"].shape
    network = SASRec(
        max_length=len(vectors["position_embedding"]),
        embedding_dim=dim,
        num_blocks=sum(name.endswith("/query_kernel") for name in vectors if name.startswith("block")),
        num_heads=int(vectors["num_heads"]),
        dropout_rate=0.0,
        flavour=Flavour(
            is_tied=is_original,
            is_input_scaled=is_original,
            layer_norm_epsilon=float(vectors["layer_norm_epsilon"]),
            table_initializer="zeros",
        ),
    ).build(num_items)
    return _set_weights(network, vectors)


def build_bert4rec(vectors: Vectors) -> Network:
    """Build a BERT4Rec network with the weights of a file."""
    num_rows, dim = vectors["word_embedding"].shape
    network = BERT4Rec(
        max_length=int(vectors["position_ids"][-1]),
        embedding_dim=dim,
        num_layers=sum(name.endswith("/query_kernel") for name in vectors),
        num_heads=int(vectors["num_heads"]),
        feed_forward_dim=vectors["layer0/ffn1_kernel"].shape[1],
        is_padding_attended=bool(vectors["padding_is_attended"]),
    ).build(num_rows - NUM_SPECIAL_ROWS)
    return _set_weights(network, vectors | {"token_type_embedding": vectors["token_type_embedding_row0"][None]})


def _set_weights(network: Network, vectors: Vectors) -> Network:
    """Set the variables of a network to the arrays of a file; further rows of tables become zero."""
    for name, variable in named_variables(network).items():
        values = np.zeros(variable.shape, np.float32)
        values[: len(vectors[name])] = vectors[name]
        variable.assign(values)
    return network


def named_variables(network: Network) -> dict[str, keras.Variable]:
    """Return the variables of a network by their names in the files: `block0/query/kernel` is `block0/query_kernel`."""
    named = {}
    for variable in network.trainable_variables:
        *scopes, layer, kind = variable.path.removeprefix(f"{network.name}/").split("/")
        named["/".join([*scopes, layer if kind == "embeddings" else f"{layer}_{kind}"])] = variable
    return named
