"""The values that are live at a cut between two nodes of a program."""

from __future__ import annotations

from typing import Dict, FrozenSet, List, NamedTuple, Set

from ..graph import uses
from .frontier import Frontiers
from .program import Call, Program


class CutCost(NamedTuple):
    """The values that a cut adds. `count`: of those with a gradient and a dimension of samples, such as hidden states."""

    count: int
    bytes: float


class Liveness:
    def __init__(self, program: Program, frontiers: Frontiers):
        self._program = program
        self._of = frontiers.of
        count = len(program.nodes) + 1
        begins: List[List[int]] = [[] for _ in range(count + 1)]
        ends: List[List[int]] = [[] for _ in range(count + 1)]
        for value, last in program.last_use.items():
            made = program.made.get(value, -1)
            if not program.is_model_tensor(value) and made < last:
                begins[made + 1].append(value)
                ends[last + 1].append(value)
        self.at: List[FrozenSet[int]] = []
        """[node] the values that are transferred by a cut before it."""
        alive: Dict[int, int] = {}
        before: FrozenSet[int] = frozenset()
        for place in range(count):
            for value in begins[place]:
                for needed in self._of[value]:
                    alive[needed] = alive.get(needed, 0) + 1
            for value in ends[place]:
                for needed in self._of[value]:
                    alive[needed] -= 1
                    if not alive[needed]:
                        del alive[needed]
            if begins[place] or ends[place]:
                before = frozenset(alive)
            self.at.append(before)
        self.bytes = [sum(map(program.bytes, values)) for values in self.at]

    def best(self, first: int, last: int) -> int:
        """The cut from `first` to `last` with the fewest bytes; the last of equal ones."""
        return min(range(first, last + 1), key=lambda place: (self.bytes[place], -place))

    def around(self, call: Call, place: int) -> CutCost:
        """The values that a cut in a call adds: computed in it before `place`, or used in it from there on."""
        used: Set[int] = set()
        for node in self._program.nodes[place:call.end]:
            for value in uses(node):
                if self._program.made.get(value, -1) < place and not self._program.is_model_tensor(value):
                    used |= self._of[value]
        own = {value for value in self.at[place] if value in used or self._program.made.get(value, -1) >= call.begin}
        hidden = [value for value in own if self._program.gradient.get(value) and self._program.has_batch(value)]
        return CutCost(len(hidden), sum(map(self._program.bytes, own)))
