"""The package of layers, in memory, after its comparison with the model and with each layer in PyTorch."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Collection, Dict, List, NamedTuple, Optional, Tuple

import torch

from . import check, experts, frozen, losses, pieces, reference
from .assemble import Assembled, assemble
from .comparison import Comparison
from .errors import ExportError
from .folder_weights import FolderWeights
from .layer_values import LayerIterator
from .layers import Layers, Names
from .lines import guarded
from .memory_limit import MemoryLimit
from .modules import ModuleStack, preserved_state
from .named import Input, Limit, by_name, each
from .short_texts import is_long
from .trace import Tracer
from .trace_layers import TracedLayer, trace_all
from .virtual import preserved_attributes, without_values

INTERNAL_ERROR = "This is an internal error of Motley; joining this layer with its neighbours may avoid it"

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
    folder: Optional[str] = None
    """For temporary files; by default that of the system."""


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
                     options: Options, only: Optional[Collection[str]] = None) -> VerifiedPackage:
    """The package of `described`, with references; or, with `only`, the comparison of these layers alone. Raises ExportError for what
    packages do not support, and if it differs from PyTorch."""
    roots = [root for _, root in described.roots]
    with contextlib.ExitStack() as held:
        if stored.sources:
            held.enter_context(pieces.mapped_memory())
        with guarded("the model cannot be read", INTERNAL_ERROR):
            names.check()
            frozen_tensors = frozen.find_frozen(names, roots, options.base)
            errors = held.enter_context(frozen.with_float32_values(names, frozen_tensors))
        held.enter_context(preserved_state(roots))
        stack = held.enter_context(ModuleStack(names.modules))
        of_experts = experts.notice(roots)
        notices = [*described.notices, *([of_experts] if of_experts else [])]
        is_compared = not stored.sources or not is_long(example) and stored.allows_whole(example[1][:1].numel())
        if is_compared:
            with guarded("the layers cannot be compared with the model", INTERNAL_ERROR, stack.path), stored.whole() as whole:
                comparison = Comparison(*whole, stack, losses.counted_positions(terms, example[1]))
                comparison.run(example[0], options.input_limit)
                notices += [text for text in comparison.notices if text not in notices]
        traced, built = _assembled(described, terms, example, names, stack, frozen_tensors, options)
        limit = MemoryLimit(built, stored.memory(options.memory), may_skip=bool(stored.sources))
        layers = LayerIterator(built, described, traced, example, stack, stored.sources, limit, only)
        eager = check.EagerComparison(described, terms, stack, limit, options.folder)
        references = reference.References(described, terms, stack, limit)
        with guarded("the layer raises on other samples than the example's",
                     "Make it accept all values of the example's kind; integers that are stored as floats may be clamped to "
                     "their range", stack.path):
            for values in layers:
                eager.compare(values)
                if only is None:
                    references.add(values)
                del values  # with its weights, before those of the next layer are read
        # The traced values are written; after this block the model has its own values again.
        built = built._replace(tensors={key: tensor.detach() for key, tensor in built.tensors.items()})
    return VerifiedPackage(built, references.found, eager.largest_difference, [*notices, *frozen.notices(options.base, errors)],
                           layers.skipped, is_compared)


def outline(described: Layers, terms: losses.Loss, example: Example, names: Names, options: Options) -> Assembled:
    """The package of a model without values, which is not compared."""
    roots = [root for _, root in described.roots]
    names.check()
    with preserved_state(roots), ModuleStack(names.modules) as stack:
        return _assembled(described, terms, example, names, stack, {}, options)[1]


def _assembled(described: Layers, terms: losses.Loss, example: Example, names: Names, stack: ModuleStack,
               frozen_tensors: Dict[int, frozen.Frozen], options: Options) -> Tuple[List[TracedLayer], Assembled]:
    with guarded("the layers cannot be traced", INTERNAL_ERROR, stack.path), experts.computed_for_all_tokens([root for _, root in described.roots]):
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
