"""Builds a model's layers from its recorded forwards in training and in evaluation, with the same cuts."""

from __future__ import annotations

from typing import Dict, List, NamedTuple

import torch

from ..graph import uses
from .blocks import Blocks, Cut, place_of
from .boundary import aligned
from .division import CannotCut, Division
from .frontier import Frontiers
from .liveness import Liveness
from .program import Call, Program
from .segment import Segment


class _Mode(NamedTuple):
    program: Program
    frontiers: Frontiers
    liveness: Liveness

    def places(self, cuts: List[Cut]) -> List[int]:
        """[cut] the node before which it is; -1 if this mode does not have it."""
        found = [place_of(self.program, self.liveness, cut) for cut in cuts]
        return [-1 if place is None else place for place in found]

    def division(self, places: List[int]) -> Division:
        return Division(self.program, self.frontiers, places, [self.liveness.bytes[place] for place in places])


def divide(model: torch.nn.Module, train: Program, evaluate: Program) -> List[Segment]:
    """The layers; a single one if the model cannot be cut."""
    modes = [_mode(train), _mode(evaluate)]
    cuts = _in_order(modes, Blocks(train, modes[0].liveness).cuts())
    while True:
        places = [mode.places(cuts) for mode in modes]
        try:
            divided = [mode.division(found) for mode, found in zip(modes, places)]
            boundaries = [aligned(*both) for both in zip(divided[0].boundaries, divided[1].boundaries)]
            wrong = [k for k, both in enumerate(boundaries) if both is None]
        except CannotCut as error:
            wrong = error.boundaries
        if not wrong:
            break
        cuts = [cut for k, cut in enumerate(cuts) if k not in wrong]
    for mode, division in enumerate(divided):
        division.boundaries = [both[mode] for both in boundaries if both is not None]
    names = _names(train, places[0])
    last = len(names) - 1
    return [Segment(name, model, divided[0].part(k), divided[1].part(k), train.structure if k == last else None)
            for k, name in enumerate(names)]


def _mode(program: Program) -> _Mode:
    frontiers = Frontiers(program)
    return _Mode(program, frontiers, Liveness(program, frontiers))


def _in_order(modes: List[_Mode], cuts: List[Cut]) -> List[Cut]:
    """The cuts that exist in both modes, in the same order and with nodes between them."""
    kept: List[Cut] = []
    before = [0] * len(modes)
    for cut, *places in zip(cuts, *(mode.places(cuts) for mode in modes)):
        if all(first < place < len(mode.program.nodes) for mode, first, place in zip(modes, before, places)):
            kept.append(cut)
            before = places
    return kept


def _names(program: Program, places: List[int]) -> List[str]:
    """For each layer, the path of the call with the most parameters."""
    found: List[str] = []
    count: Dict[str, int] = {}
    for begin, end in zip([0, *places], [*places, len(program.nodes)]):
        within = _within(program.calls, begin, end)
        best = max(within, key=lambda call: _weight(program, call), default=None)
        name = best.path if best is not None and best.path else f"operations {begin} to {end}"
        count[name] = count.get(name, 0) + 1
        found.append(name if count[name] == 1 else f"{name} ({count[name]})")
    return found


def _within(call: Call, begin: int, end: int) -> List[Call]:
    """The outermost calls that lie between two places."""
    if call.path and begin <= call.begin and call.end <= end:
        return [call] if call.end > call.begin else []
    return [found for inner in call.calls for found in _within(inner, begin, end)]


def _weight(program: Program, call: Call) -> int:
    used = {value for node in program.nodes[call.begin:call.end] for value in uses(node)}
    return sum(program.trained[value].numel() for value in used if value in program.trained)
