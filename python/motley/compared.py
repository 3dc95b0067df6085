"""The package of layers in memory, after its comparison with the model and with each layer in PyTorch."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch

from . import check, frozen, losses, outputs, reference
from .assemble import Assembled, assemble
from .errors import ExportError
from .from_folder import FolderWeights
from .layer_values import LayerValues
from .layers import Layers, Names
from .lines import guarded
from .memory_limit import GIB, MemoryLimit
from .modules import ModuleStack, left_alone
from .split import split
from .trace import Tracer
from .virtual import attributes_as_before, without_values
from .walk import Traced, trace_all
from .whole import Comparison

OWN_FAULT = "This is a fault of Motley's, which should say more; joining the layers around this one may avoid it"

SHORT_TOKENS = 128
"""The length of texts with which layers are compared that take too much memory with the example's."""

Example = Tuple[torch.Tensor, torch.Tensor]


class Options(NamedTuple):
    """Those of `export`."""

    decayed: Callable[[str, torch.Tensor], bool] = lambda _, tensor: tensor.dim() >= 2
    input_limit: Optional[int] = None
    target_limit: Optional[int] = None
    unit: Optional[str] = None
    units_per_sample: Optional[int] = None
    base: Optional[str] = None
    memory: Optional[float] = None


class Made(NamedTuple):
    built: Assembled
    references: List[Dict[str, Any]]
    largest_difference: float
    notices: List[str]
    left_out: List[str]
    """The layers that were not compared by values, for want of memory."""
    is_compared: bool
    """Whether the layers were compared with the whole model."""


def made(described: Layers, terms: losses.Loss, example: Example, names: Names, stored: FolderWeights, options: Options) -> Made:
    """The package of `described`. Raises ExportError where it cannot be one, or is not what PyTorch computes."""
    roots = [root for _, root in described.roots]
    with contextlib.ExitStack() as held:
        with guarded("the model cannot be read", OWN_FAULT):
            names.check()
            base_as_held = frozen.frozen_of(names, roots, options.base)
            errors = held.enter_context(frozen.computed(names, base_as_held))
        held.enter_context(left_alone(roots))
        stack = held.enter_context(ModuleStack(names.modules))
        notices = list(described.notices)
        is_compared = not stored.sources or stored.is_small and not _is_long(example)
        if is_compared:
            with guarded("the layers cannot be compared with the model", OWN_FAULT, stack.path), stored.whole() as whole:
                comparison = Comparison(*whole, stack, losses.counted(terms, example[1]))
                comparison.run(example[0], options.input_limit)
                notices = comparison.notices
        traced, built = _assembled(described, terms, example, names, stack, base_as_held, options)
        limit = MemoryLimit(built, stored.memory(options.memory), may_skip=bool(stored.sources))
        values = LayerValues(built, described, traced, example, stack, stored.sources, limit)
        eager, references = check.EagerComparison(described, terms, stack, limit), reference.References(described, terms, stack, limit)
        left_out = []
        with guarded("the layer raises on other samples than the example's", "Make it take any values of the example's kind; integers that "
                     "come as floats may be clamped to their range", stack.path):
            for valued in values:
                if not eager.compare(valued):
                    left_out.append(valued.traced.name)
                references.add(valued)
        # Has the traced values: after this block the model has its own values again.
        built = built._replace(tensors={key: tensor.detach() for key, tensor in built.tensors.items()})
    return Made(built, references.found, eager.largest_difference, [*notices, *frozen.notices(options.base, errors)], left_out + values.unknown, is_compared)


def outlined(described: Layers, terms: losses.Loss, example: Example, names: Names, options: Options) -> Assembled:
    """The package of `described` where nothing has values, so that nothing is compared."""
    roots = [root for _, root in described.roots]
    names.check()
    with left_alone(roots), ModuleStack(names.modules) as stack:
        return _assembled(described, terms, example, names, stack, {}, options)[1]


def _assembled(described: Layers, terms: losses.Loss, example: Example, names: Names, stack: ModuleStack, base: Dict[int, frozen.Frozen],
               options: Options) -> Tuple[List[Traced], Assembled]:
    with guarded("the layers cannot be traced", OWN_FAULT, stack.path):
        traced = _traced(described, terms, example, lambda: Tracer(names.of, stack, names.memory(), base))
        return traced, assemble(traced, names, base, terms, options.decayed, options.input_limit, options.target_limit, options.unit,
                                options.units_per_sample)


def _is_long(example: Example) -> bool:
    """Whether the samples are texts that may be cut to SHORT_TOKENS."""
    return all(x.dim() == 2 and x.size(1) > SHORT_TOKENS and not x.is_floating_point() for x in example)


def _traced(described: Layers, terms: losses.Loss, example: Example, tracer: Callable[[], Tracer]) -> List[Traced]:
    """Without values, of which a layer has many at once; with them, if a layer asks for them."""
    try:
        with contextlib.ExitStack() as held:
            for _, root in described.roots:
                held.enter_context(attributes_as_before(root))
            return trace_all(described, terms, (without_values(example[0]), without_values(example[1])), tracer())
    except ExportError:
        return trace_all(described, terms, example, tracer())


def compared_shorter(found: Made, described: Layers, terms: losses.Loss, example: Example, names: Names, stored: FolderWeights,
                     options: Options) -> List[str]:
    """What was not compared, in words for the user, after that was compared with shorter texts where these fit into memory."""
    if not found.left_out and found.is_compared:
        return []
    again = None
    if described.traced and described.model is not None and _is_long(example):
        short = example[0][:, :SHORT_TOKENS].contiguous(), example[1][:, :SHORT_TOKENS].contiguous()
        layers = split(described.model, short, forward=described.whole if described.by == "forward" else None)
        again = made(layers, terms, short, names, stored.of(layers), options)
    notices = []
    if again is None or not again.is_compared:
        notices.append("the layers were not compared with the whole model, whose weights are not in memory at once: they run the operations "
                       "that its trace recorded")
    if found.left_out:
        notice = (f"{outputs.some(found.left_out)}: comparing them with PyTorch takes more than {stored.memory(options.memory) / GIB:.2f} GiB, "
                  "so they have no reference; memory= raises the limit")
        if again is not None:
            notice += f". They were compared with {SHORT_TOKENS} tokens" + (f", except {outputs.some(again.left_out)}" if again.left_out else "")
        notices.append(notice)
    return notices
