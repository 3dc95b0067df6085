"""The package of layers, in memory, after its comparison with the model and with each layer in PyTorch."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from . import check, frozen, losses, outputs, reference
from .assemble import Assembled, assemble
from .comparison import Comparison
from .errors import ExportError
from .folder_weights import FolderWeights
from .layer_values import LayerIterator
from .layers import Layers, Names
from .lines import guarded
from .memory_limit import GIB, MemoryLimit
from .modules import ModuleStack, preserved_state
from .named import Input, Limit, by_name, each, tensors
from .split import split
from .trace import Tracer
from .trace_layers import TracedLayer, trace_all
from .virtual import preserved_attributes, without_values

INTERNAL_ERROR = "This is an internal error of Motley; joining this layer with its neighbours may avoid it"

SHORT_TOKENS = 128
"""The length of the texts with which layers are compared that need too much memory with the example's."""

Example = Tuple[Input, torch.Tensor]


class Options(NamedTuple):
    """Options of `export`."""

    decayed: Callable[[str, torch.Tensor], bool] = lambda _, tensor: tensor.dim() >= 2
    input_limit: Limit = None
    target_limit: Optional[int] = None
    unit: Optional[str] = None
    units_per_sample: Optional[int] = None
    base: Optional[str] = None
    memory: Optional[float] = None


class VerifiedPackage(NamedTuple):
    built: Assembled
    references: List[Dict[str, Any]]
    largest_difference: float
    notices: List[str]
    skipped: List[str]
    """The layers that were not compared by values, because that needs too much memory."""
    is_compared: bool
    """Whether the layers were compared with the whole model."""


def verified_package(described: Layers, terms: losses.Loss, example: Example, names: Names, stored: FolderWeights,
                     options: Options, with_references: bool = True) -> VerifiedPackage:
    """The package of `described`. Raises ExportError for what packages do not support, and if it differs from PyTorch."""
    roots = [root for _, root in described.roots]
    with contextlib.ExitStack() as held:
        with guarded("the model cannot be read", INTERNAL_ERROR):
            names.check()
            frozen_tensors = frozen.find_frozen(names, roots, options.base)
            errors = held.enter_context(frozen.with_float32_values(names, frozen_tensors))
        held.enter_context(preserved_state(roots))
        stack = held.enter_context(ModuleStack(names.modules))
        notices = list(described.notices)
        is_compared = not stored.sources or stored.is_small and not _is_long(example)
        if is_compared:
            with guarded("the layers cannot be compared with the model", INTERNAL_ERROR, stack.path), stored.whole() as whole:
                comparison = Comparison(*whole, stack, losses.counted_positions(terms, example[1]))
                comparison.run(example[0], options.input_limit)
                notices = comparison.notices
        traced, built = _assembled(described, terms, example, names, stack, frozen_tensors, options)
        limit = MemoryLimit(built, stored.memory(options.memory), may_skip=bool(stored.sources))
        layers = LayerIterator(built, described, traced, example, stack, stored.sources, limit)
        eager = check.EagerComparison(described, terms, stack, limit)
        references = reference.References(described, terms, stack, limit)
        skipped = []
        with guarded("the layer raises on other samples than the example's",
                     "Make it accept all values of the example's kind; integers that are stored as floats may be clamped to "
                     "their range", stack.path):
            for values in layers:
                if not eager.compare(values):
                    skipped.append(values.traced.name)
                if with_references:
                    references.add(values)
        # The traced values are written; after this block the model has its own values again.
        built = built._replace(tensors={key: tensor.detach() for key, tensor in built.tensors.items()})
    return VerifiedPackage(built, references.found, eager.largest_difference, [*notices, *frozen.notices(options.base, errors)],
                           skipped + layers.skipped, is_compared)


def outline(described: Layers, terms: losses.Loss, example: Example, names: Names, options: Options) -> Assembled:
    """The package of a model without values, which is not compared."""
    roots = [root for _, root in described.roots]
    names.check()
    with preserved_state(roots), ModuleStack(names.modules) as stack:
        return _assembled(described, terms, example, names, stack, {}, options)[1]


def _assembled(described: Layers, terms: losses.Loss, example: Example, names: Names, stack: ModuleStack,
               frozen_tensors: Dict[int, frozen.Frozen], options: Options) -> Tuple[List[TracedLayer], Assembled]:
    with guarded("the layers cannot be traced", INTERNAL_ERROR, stack.path):
        traced = _traced(described, terms, example, lambda: Tracer(names.of, stack, names.memory(), frozen_tensors))
        return traced, assemble(traced, names, frozen_tensors, terms, options.decayed, options.input_limit, options.target_limit,
                                options.unit, options.units_per_sample, list(by_name(example[0])))


def _traced(described: Layers, terms: losses.Loss, example: Example, tracer: Callable[[], Tracer]) -> List[TracedLayer]:
    """Traces without values, of which a layer has many at once; with values if a layer depends on them."""
    try:
        with contextlib.ExitStack() as held:
            for _, root in described.roots:
                held.enter_context(preserved_attributes(root))
            return trace_all(described, terms, (each(without_values, example[0]), without_values(example[1])), tracer())
    except ExportError:
        return trace_all(described, terms, example, tracer())


def _is_long(example: Example) -> bool:
    """Whether the samples are texts that may be cropped to SHORT_TOKENS."""
    return all(x.dim() == 2 and x.size(1) > SHORT_TOKENS and not x.is_floating_point()
               for x in (*tensors(example[0]), example[1]))


def _cropped(tensor: torch.Tensor) -> torch.Tensor:
    return tensor[:, :SHORT_TOKENS].contiguous()


def compare_shorter(found: VerifiedPackage, described: Layers, terms: losses.Loss, example: Example, names: Names,
                    stored: FolderWeights, options: Options) -> Tuple[List[str], float]:
    """Compares with shorter texts, if they fit into memory, what was not compared in `found`. Returns notices for the user, and the
    largest difference."""
    if not found.skipped and found.is_compared:
        return [], 0.0
    again = None
    if described.traced and described.model is not None and _is_long(example):
        short = each(_cropped, example[0]), _cropped(example[1])
        layers = split(described.model, short, forward=described.whole if described.by == "forward" else None).taking(short[0])
        again = verified_package(layers, terms, short, names, stored.with_layers(layers), options, with_references=False)
    notices = []
    if again is None or not again.is_compared:
        notices.append("the layers were not compared with the whole model, whose weights are not in memory at once: they run the "
                       "operations that its trace recorded")
    if found.skipped:
        notice = (f"{outputs.listed(found.skipped)}: the comparison with PyTorch needs more than "
                  f"{stored.memory(options.memory) / GIB:.2f} GiB, so the package has no reference for them; memory= raises the limit")
        if again is not None:
            notice += f". They were compared with {SHORT_TOKENS} tokens"
            notice += f", except {outputs.listed(again.skipped)}" if again.skipped else ""
        notices.append(notice)
    return notices, again.largest_difference if again is not None else 0.0
