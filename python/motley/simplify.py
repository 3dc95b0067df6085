"""Simplifies a recording: removes unused nodes, common subexpressions and double transposes, and folds constants."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Tuple

import torch

from . import interpret, narrow, operations
from .graph import Batch, Node, leaves, needed, use_instead, uses
from .layers import is_statistic
from .trace import Trace
from .virtual import Virtual

_FILLS = frozenset({"aten::zeros", "aten::ones", "aten::full", "aten::zeros_like", "aten::ones_like", "aten::full_like",
                    "aten::new_zeros", "aten::new_ones", "aten::new_full", "aten::scalar_tensor"})
"""Operations that are cheaper to run than to read their result from a file, and whose result may be large."""

_TYPES = (torch.float32, torch.int64, torch.bool)
_LARGEST_CONSTANT_BYTES = 64 << 20


_EMPTY = {"aten::empty.memory_format": "aten::zeros", "aten::empty_like": "aten::zeros_like",
          "aten::empty_strided": "aten::zeros", "aten::empty_permuted": "aten::zeros",
          "aten::new_empty": "aten::new_zeros", "aten::new_empty_strided": "aten::new_zeros"}
"""[operation with uninitialized result] its replacement with zeros, e.g. for tensors whose parts are written one by one."""


def simplify(trace: Trace) -> None:
    """Shortens `trace.recorder.nodes`, and replaces values computed from constants alone by constants."""
    recorder = trace.recorder
    _eliminate_common(trace)
    recorder.nodes = needed(recorder.nodes, list(trace.results.values()))
    for node in recorder.nodes:
        if node.op in _EMPTY:
            if node.op.endswith(("_strided", "_permuted")):
                node.args = node.args[:-1]
            node.op = _EMPTY[node.op]
            node.kwargs.pop("memory_format", None)
    _fold(trace)
    recorder.nodes = needed(recorder.nodes, list(trace.results.values()))


def _eliminate_common(trace: Trace) -> None:
    """Eliminates common subexpressions of a pass. A transposed transpose, which autograd creates around products with weights, is
    replaced by the matrix itself."""
    instead: Dict[int, int] = {}
    transposed: Dict[int, int] = {}  # [transposed] original
    made: Dict[str, Tuple[int, ...]] = {}  # [an operation with its arguments] its results
    for node in trace.recorder.nodes:
        use_instead([node], instead)
        if node.op == "aten::t":
            source = node.args[0].value
            transposed[node.results[0]] = source
            if source in transposed:
                instead[node.results[0]] = transposed[source]
                continue
        key = repr((node.op, node.args, node.kwargs, node.backward))
        instead.update(zip(node.results, made.setdefault(key, node.results)))
    for role, value in trace.results.items():
        trace.results[role] = instead.get(value, value)


def _fold(trace: Trace) -> None:
    recorder = trace.recorder
    constants = {value: tensor for value, tensor in recorder.constants.items()
                 if not is_statistic(recorder.names.get(value, "")) and not isinstance(tensor, Virtual)}
    converted = narrow.conversions(recorder.nodes, constants, recorder.shapes)
    known = _Known(constants)
    maker: Dict[int, Node] = {}
    fixed: List[Node] = []
    for node in recorder.nodes:
        if not _runs_eliminate_common(node, known):
            continue
        if node.results[0] in converted:
            known.later.update({value: node for value in node.results})
        else:
            known.run(node)
        maker.update({value: node for value in node.results})
        fixed.append(node)
    folded = {id(node) for node in fixed}
    rest = [node for node in recorder.nodes if id(node) not in folded]
    asked = [value for node in rest for value in uses(node)] + list(trace.results.values())
    kept: Dict[int, Node] = {}  # [id of a node]
    while asked:
        value = asked.pop()
        made_by = maker.get(value)
        if made_by is None or value in recorder.constants or id(made_by) in kept:
            continue
        if value not in converted and _storable(made_by, known[value]):
            recorder.constants[value] = known[value].contiguous()
            recorder.roles.pop(value, None)
        else:
            kept[id(made_by)] = made_by
            asked += uses(made_by)
    recorder.nodes = [node for node in recorder.nodes if id(node) not in folded or id(node) in kept]


class _Known(Mapping[int, torch.Tensor]):
    """Values computed from constants alone. Results of the nodes in `later` are recomputed at each access."""

    def __init__(self, constants: Dict[int, torch.Tensor]):
        self._tensors = dict(constants)
        self.later: Dict[int, Node] = {}

    def run(self, node: Node) -> None:
        self._tensors.update(zip(node.results, self._results(node)))

    def _results(self, node: Node) -> List[torch.Tensor]:
        taken = {value: self[value] for value in uses(node)}
        results = interpret.run_node(node, taken, samples=1)
        assert all(result is not None for result in results)
        return results  # type: ignore[return-value]

    def __getitem__(self, value: int) -> torch.Tensor:
        node = self.later.get(value)
        return self._tensors[value] if node is None else self._results(node)[node.results.index(value)]

    def __contains__(self, value: object) -> bool:
        return value in self._tensors or value in self.later

    def __iter__(self) -> Iterator[int]:
        yield from (*self._tensors, *self.later)

    def __len__(self) -> int:
        return len(self._tensors) + len(self.later)


def _runs_eliminate_common(node: Node, known: Mapping[int, torch.Tensor]) -> bool:
    if node.op.startswith("motley::") or any(value not in known for value in uses(node)):
        return False
    return not any(isinstance(leaf, Batch) for leaf in leaves([node.args, list(node.kwargs.values())]))


def _storable(node: Node, tensor: torch.Tensor) -> bool:
    return (tensor.is_contiguous() and tensor.dtype in _TYPES and node.op not in _FILLS
            and not operations.is_view(operations.find(node.op))
            and tensor.numel() * tensor.element_size() <= _LARGEST_CONSTANT_BYTES)
