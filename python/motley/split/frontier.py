"""The values that a later layer needs for a value: the value itself, or fewer bytes from which it is recomputed.

Masks and tables of positions are computed from the number of samples, or from much smaller ids; a bias of positions from a
small parameter. Each layer that uses such values recomputes them by the same operations, with the same bits. Expensive
operations, such as products, and random draws are computed once, and their results are transferred.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, Set

from .. import operations
from ..graph import Node, uses
from .program import Program

_CHEAP = frozenset("""
    _to_copy abs add addcdiv addcmul arange argsort atan2 bitwise_and bitwise_not bitwise_or bitwise_xor bucketize cat ceil clamp
    clamp_max clamp_min clone constant_pad_nd copy cos cumsum detach diagonal_scatter div embedding eq exp expand eye fill flip floor
    floor_divide fmod full gather ge gelu gt index index_select isinf isnan le linspace log log2 logical_and logical_not logical_or
    logical_xor lt masked_fill maximum minimum mul ne neg ones pow reciprocal relu remainder repeat repeat_interleave roll round rsqrt
    rsub scalar_tensor scatter select_scatter sigmoid sign silu sin slice_scatter sqrt stack sub tanh tril triu where zeros
    any all max min sum mean amax amin argmax one_hot new_zeros new_ones new_full""".split())
"""Operations that are recomputed, by names without overloads and underscores; views are cheap too."""

_CHEAP_WITHOUT_GRADIENT = frozenset(("bmm", "mm", "matmul", "sort", "topk"))
"""Cheap without a gradient, for positions and masks, which are small: rotary tables are an outer product."""

PARAMETER_WEIGHT = 4.0
"""The weight of a parameter's bytes against those of values: as part of a boundary it is sent for each sample."""

_LARGE_CONSTANT = 1 << 16
"""The bytes beyond which a constant is not copied to several layers."""

_MOST = 6
"""The most values that are transferred instead of one."""


class Frontiers:
    """For each value of a program, the values that are transferred instead of it; usually the value itself."""

    def __init__(self, program: Program):
        self._program = program
        self.of: Dict[int, FrozenSet[int]] = {value: frozenset((value,)) for value in program.inputs.values()}
        for value in program.trained:
            self.of[value] = frozenset((value,))
        for value in program.constants:
            self.of[value] = frozenset((value,)) if value in program.statistics else frozenset()
        for node in program.nodes:
            again = self._again(node)
            for value in node.results:
                self.of[value] = again if again is not None and self._is_less(again, value) else frozenset((value,))

    def cost(self, values: Iterable[int]) -> float:
        """The bytes of one sample."""
        return sum(self._program.bytes(value) for value in values)

    def _again(self, node: Node) -> "FrozenSet[int] | None":
        """The values that recomputing a node needs; None if it is not recomputed."""
        program = self._program
        if any(value in program.constants and program.bytes(value) > _LARGE_CONSTANT and program.has_batch(node.results[0])
               for value in uses(node)):
            return None
        if all(value in program.fixed for value in node.results):
            return frozenset()
        base = node.op.split("::")[1].split(".")[0].rstrip("_")
        cheap = base in _CHEAP or not node.op.startswith(("call::", "motley::")) and operations.is_view(operations.find(node.op))
        follows = any(program.gradient.get(value, False) for value in node.results)
        if not cheap and (follows or base not in _CHEAP_WITHOUT_GRADIENT):
            return None
        needs: Set[int] = set()
        for value in uses(node):
            needs |= self.of[value]
        if needs & program.statistics or len(needs) > _MOST:
            return None
        return frozenset(needs)

    def _is_less(self, needs: FrozenSet[int], value: int) -> bool:
        program = self._program
        own = program.bytes(value)
        weighed = sum(program.bytes(n) * (PARAMETER_WEIGHT if n in program.trained else 1) for n in needs)
        if program.gradient.get(value, False):
            return weighed < own
        return weighed <= own

    def nodes_for(self, value: int, known: Set[int], chosen: Dict[int, Node], needs: Set[int]) -> None:
        """Adds to `chosen` the nodes that recompute `value` from transferred values, and to `needs` these values. `known`:
        values that are already available."""
        open_: List[int] = [value]
        while open_:
            value = open_.pop()
            if value in known or value in self._program.constants:
                continue
            if self.of[value] == {value}:
                needs.add(value)
                continue
            index = self._program.made[value]
            if index not in chosen:
                chosen[index] = self._program.nodes[index]
                open_ += uses(chosen[index])
