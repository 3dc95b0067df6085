"""Possible cuts of a model: between its blocks and the parts around them, and inside blocks where few bytes cross.

A block is a call of a module whose type occurs several times in the model: the outermost such call that contains no list of
further blocks. Every other call that contains blocks is traversed; the nodes between two blocks are one part. A block is cut
inside where about as few bytes cross as at its ends, e.g. between the attention and the MLP of a transformer's block. Blocks of
one type are all cut in the same places.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

import torch

from ..graph import uses
from .liveness import Liveness
from .program import Call, Key, Program

_CONTAINERS = (torch.nn.Sequential, torch.nn.ModuleList, torch.nn.ModuleDict)

_MAX_BYTES_RATIO = 1.25
"""The largest ratio of the bytes at a cut inside a block to those at its ends."""


class Cut(NamedTuple):
    """A cut between two calls that are not nested: after `before`, and at or before the start of `after`."""

    before: Key
    after: Key


class Unit(NamedTuple):
    call: Call
    is_block: bool


class Blocks:
    """The units of a program, in the order in which they run."""

    def __init__(self, program: Program, liveness: Liveness):
        self._program = program
        self._liveness = liveness
        self._matrices = self._nodes_with_matrices()
        self._instances: Dict[type, Set[int]] = {}
        self._known: Dict[Key, bool] = {}
        self._allowed: Dict[Tuple[type, str], bool] = {}  # [block type, position inside] whether these blocks are cut there
        for call in program.calls.all():
            if call.module is not None and call.end > call.begin:
                self._instances.setdefault(type(call.module), set()).add(id(call.module))
        self.units = [unit for unit in self._units(program.calls) if unit.call.end > unit.call.begin]
        if not any(unit.is_block for unit in self.units):
            self.units = [Unit(call, True) for call in self._parts(program.calls) if self._weighs(call.begin, call.end)]

    # Blocks and parts.

    def _units(self, call: Call) -> Iterator[Unit]:
        for inner in call.calls:
            if self._is_block(inner):
                yield Unit(inner, True)
            elif any(self._is_block(below) for below in inner.all()):
                yield from self._units(inner)
            else:
                yield Unit(inner, False)

    def _is_block(self, call: Call) -> bool:
        if call.key not in self._known:
            self._known[call.key] = self._is_found_a_block(call)
        return self._known[call.key]

    def _is_found_a_block(self, call: Call) -> bool:
        if call.module is None or isinstance(call.module, _CONTAINERS) or not call.calls:
            return False
        if not self._weighs(call.begin, call.end) or len(self._instances[type(call.module)]) < 2:
            return False
        return not self._has_blocks_of_parts(call)

    def _has_blocks_of_parts(self, call: Call) -> bool:
        """Whether it contains a list of blocks that consist of several modules themselves, like the stack of an encoder."""
        found: Dict[Tuple[str, type], int] = {}
        for below in call.all():
            if below is call or below.module is None or isinstance(below.module, _CONTAINERS):
                continue
            if not any(inner.calls for inner in below.calls) or not self._weighs(below.begin, below.end):
                continue
            place = (below.path.rpartition(".")[0], type(below.module))
            if re.fullmatch(r".*\.\d+", below.path) and below.key[1] == 0:
                found[place] = found.get(place, 0) + 1
        return any(count > 1 for count in found.values())

    def _parts(self, call: Call) -> Iterator[Call]:
        """The units of a model without blocks: its children, and the items of containers."""
        alone = [inner for inner in call.calls if inner.end > inner.begin]
        for inner in alone:
            if isinstance(inner.module, _CONTAINERS) or (len(alone) == 1 and inner.calls):
                yield from self._parts(inner)
            else:
                yield inner

    def _nodes_with_matrices(self) -> List[int]:
        """[node] the number of preceding nodes that compute with a parameter of two or more dimensions, without lookups."""
        program = self._program
        found = [0]
        for node in program.nodes:
            matrix = any(program.is_model_tensor(value) and value not in program.statistics and self._is_matrix(value)
                         for value in uses(node)) and node.op != "aten::embedding"
            found.append(found[-1] + matrix)
        return found

    def _is_matrix(self, value: int) -> bool:
        tensor = self._program.trained.get(value, self._program.constants.get(value))
        return isinstance(tensor, torch.nn.Parameter) and tensor.dim() > 1

    def _weighs(self, begin: int, end: int) -> bool:
        return self._matrices[end] > self._matrices[begin]

    # Cuts.

    def cuts(self) -> List[Cut]:
        """The cuts in the order of execution."""
        found: List[Cut] = []
        for unit, block in self.units:
            for call in unit.all() if block else ():
                for cut, pattern in self._own_candidates(unit, call):
                    key = type(unit.module), pattern
                    self._allowed[key] = self._allowed.get(key, True) and self._is_narrow(unit, cut) and (
                        call is unit or self._is_narrow(call, cut))
        groups = self._groups()
        for (group, block), (behind, _) in zip(groups, groups[1:]):
            if block:
                found += self._inside(group[0])
            found.append(Cut(group[-1].key, behind[0].key))
        if groups and groups[-1][1]:
            found += self._inside(groups[-1][0][0])
        return found

    def _groups(self) -> List[Tuple[List[Call], bool]]:
        """Blocks, and the parts between them that compute with matrices; the first part may consist of lookups."""
        groups: List[Tuple[List[Call], bool]] = []
        for call, block in self.units:
            if not block and groups and not groups[-1][1]:
                groups[-1][0].append(call)
            else:
                groups.append(([call], block))
        kept = []
        for k, (group, block) in enumerate(groups):
            begin, end = group[0].begin, group[-1].end
            first = k == 0 and any(self._program.is_model_tensor(value) and self._is_matrix(value)
                                   for node in self._program.nodes[begin:end] for value in uses(node))
            if block or first or self._weighs(begin, end):
                kept.append((group, block))
        return kept

    def _inside(self, call: Call) -> List[Cut]:
        found: List[Cut] = []
        begin = call.begin
        for cut, pattern in self._candidates(call):
            place = place_of(self._program, self._liveness, cut) if self._allowed[type(call.module), pattern] else None
            if place is not None and self._weighs(begin, place) and self._weighs(place, call.end):
                found.append(cut)
                begin = place
        return found

    def _candidates(self, call: Call) -> List[Tuple[Cut, str]]:
        """Cuts between consecutive calls inside a block, at any depth, with a key that is equal in other blocks."""
        found = [each for above in call.all() for each in self._own_candidates(call, above)]
        return sorted(found, key=lambda each: self._program.call_of[each[0].after].begin)

    def _own_candidates(self, block: Call, call: Call) -> List[Tuple[Cut, str]]:
        """The cuts in one call inside a block."""
        inner = [below for below in call.calls if below.end > below.begin]
        return [(Cut(one.key, other.key), " ".join(re.sub(r"\d+", "*", each.path[len(block.path):]) for each in (one, other)))
                for one, other in zip(inner, inner[1:])]

    def _is_narrow(self, call: Call, cut: Cut) -> bool:
        place = place_of(self._program, self._liveness, cut)
        if place is None or not self._weighs(call.begin, place) or not self._weighs(place, call.end):
            return False
        ends = [self._liveness.around(call, end) for end in (call.begin, call.end)]
        here = self._liveness.around(call, place)
        return here.count <= max(1, *(end.count for end in ends)) and here.bytes <= _MAX_BYTES_RATIO * max(end.bytes for end in ends)


def place_of(program: Program, liveness: Liveness, cut: Cut) -> Optional[int]:
    """The node before which a program is cut; None if it does not have both calls in this order."""
    before, after = program.call_of.get(cut.before), program.call_of.get(cut.after)
    if before is None or after is None or before.end > after.begin:
        return None
    return liveness.best(before.end, after.begin)
