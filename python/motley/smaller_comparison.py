"""Compares the layers that need too much memory at the example's size: with shorter texts, and with fewer ids."""

from __future__ import annotations

from typing import Collection, List, NamedTuple, Optional, Tuple

import torch

from . import folder_model, losses, outputs, short_texts
from .folder_weights import FolderWeights
from .layers import Layers, Names
from .memory_limit import GIB
from .named import each
from .short_texts import Example
from .split import split
from .verified_package import Options, VerifiedPackage, verified_package

ROWS = 4096
"""The number of ids with which embeddings and heads are compared."""


class Export(NamedTuple):
    """The arguments of `verified_package`, and the folder from whose configuration the model was created, if it was."""

    described: Layers
    terms: losses.Loss
    example: Example
    names: Names
    stored: FolderWeights
    options: Options
    folder: Optional[str]


def compare_smaller(found: VerifiedPackage, export: Export) -> Tuple[List[str], float]:
    """Compares with smaller sizes, if they fit into memory, what was not compared in `found`. Returns notices for the user, and the
    largest difference."""
    if not found.skipped and found.is_compared:
        return [], 0.0
    short = _with_short_texts(found, export)
    left = found.skipped if short is None else short.skipped
    fewer = _with_fewer_ids(left, export) if left else None
    notices = []
    if short is None or not short.is_compared:
        notices.append("the layers were not compared with the whole model, whose weights are not in memory at once: they run the "
                       "operations that its trace recorded")
    if found.skipped:
        notice = (f"{outputs.listed(found.skipped)}: the comparison with PyTorch needs more than "
                  f"{export.stored.memory(export.options.memory) / GIB:.2f} GiB, so the package has no reference for them; memory= raises "
                  "the limit")
        if short is not None:
            notice += f". They were compared with {short_texts.TOKENS} tokens"
            notice += f", except {outputs.listed(left)}" if left else ""
        if fewer is not None and len(fewer.skipped) < len(left):
            compared = [name for name in left if name not in fewer.skipped]
            notice += f". {outputs.listed(compared)}: compared with the first {ROWS:,} ids of the vocabulary"
        notices.append(notice)
    return notices, max((each.largest_difference for each in (short, fewer) if each is not None), default=0.0)


def _with_short_texts(found: VerifiedPackage, export: Export) -> Optional[VerifiedPackage]:
    described = export.described
    if not described.traced or described.model is None or not short_texts.is_long(export.example):
        return None
    example = short_texts.cropped(export.example)
    layers = split(described.model, example[0], forward=described.whole if described.by == "forward" else None).taking(example[0])
    return verified_package(layers, export.terms, example, export.names, export.stored.with_layers(layers), export.options,
                            _known(found.skipped, layers))


def _with_fewer_ids(wanted: List[str], export: Export) -> Optional[VerifiedPackage]:
    """A model with the first rows of the folder's embedding; None if the model is not that of a folder, or has as few, and if the loss
    may depend on the number of classes."""
    if export.folder is None or not isinstance(export.example[0], torch.Tensor):
        return None
    if not export.terms.classes or export.terms.class_count is not None:
        return None
    model = folder_model.with_fewer_ids(export.folder, ROWS)
    if model is None:
        return None
    given = short_texts.cropped(export.example) if short_texts.is_long(export.example) else export.example
    example = each(lambda ids: ids % ROWS, given[0]), given[1] % ROWS
    layers = split(model, example[0]).taking(example[0])
    names = Names(layers)
    stored = FolderWeights(layers, names, export.folder, None, has_fewer_rows=True)
    options = export.options._replace(memory=export.stored.memory(export.options.memory) / GIB, input_limit=None, target_limit=None)
    return verified_package(layers, export.terms, example, names, stored, options, _known(wanted, layers))


def _known(wanted: List[str], layers: Layers) -> Collection[str]:
    """The names `wanted`, or all names if the layers are other ones."""
    names = [name for name, _ in layers.layers]
    return wanted if set(wanted) <= set(names) else names
