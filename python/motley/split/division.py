"""Divides the nodes of a program among layers, and determines the values at their boundaries.

Nodes keep their order: a layer has the nodes from one cut to the next. There are two exceptions: a lookup in a parameter of an
earlier layer moves to that layer, and the values of `Frontiers` are recomputed. Values that are needed longest come first at a
boundary, so the values that bypass a layer precede its inputs, and equal blocks give equal layers.
"""

from __future__ import annotations

import bisect
from typing import Dict, List, Optional, Sequence, Set

from ..graph import Node, uses
from .boundary import BoundaryValue, boundary_value
from .frontier import PARAMETER_WEIGHT, Frontiers
from .program import Program
from .segment import Part


class CannotCut(Exception):
    """The program cannot be cut at the boundaries with these indices."""

    def __init__(self, boundaries: Sequence[int]):
        self.boundaries = sorted(set(boundaries))
        super().__init__(self.boundaries)


class Division:
    def __init__(self, program: Program, frontiers: Frontiers, places: Sequence[int], limits: Sequence[float]):
        """`places`: the first nodes of all layers but the first. `limits`: the bytes that cross there. Raises CannotCut."""
        self._program = program
        self._frontiers = frontiers
        self._count = len(places) + 1
        self._layer = [bisect.bisect_right(places, k) for k in range(len(program.nodes))]
        self._home: Dict[int, int] = {}  # [parameter] its layer
        self._tied: Set[int] = set()  # parameters of the last layer as well
        self._place_parameters(limits)
        self._nodes: List[Dict[int, Node]] = [{} for _ in range(self._count)]
        self._needs: List[Set[int]] = [set() for _ in range(self._count)]
        for k, node in enumerate(program.nodes):
            self._nodes[self._layer[k]][k] = node
        for layer in range(self._count):
            self._find_needs(layer)
        empty = [min(layer, self._count - 2) for layer in range(self._count) if not self._nodes[layer]]
        if empty and self._count > 1:
            raise CannotCut(empty)
        self._last = {value: layer for layer in range(self._count) for value in self._needs[layer]}
        self.boundaries = [self._crossing(boundary) for boundary in range(self._count - 1)]

    # Parameters.

    def _place_parameters(self, limits: Sequence[float]) -> None:
        users: Dict[int, List[int]] = {}
        for k, node in enumerate(self._program.nodes):
            for value in set(uses(node)):
                if value in self._program.trained or value in self._program.statistics:
                    users.setdefault(value, []).append(k)
        wrong: Set[int] = set()
        for value, nodes in users.items():
            self._move_lookups(value, nodes)
            layers = sorted({self._layer[k] for k in nodes})
            self._home[value] = layers[0]
            if len(layers) == 1:
                continue
            if layers == [0, self._count - 1] and value in self._program.trained:
                self._tied.add(value)
                continue
            between = range(layers[0], layers[-1])
            most = max(limits[boundary] for boundary in between)
            # A parameter is sent to other layers that use it only if it is small against the values that cross there.
            if value in self._program.statistics or PARAMETER_WEIGHT * self._program.bytes(value) > most:
                wrong.update(between)
        if wrong:
            raise CannotCut(list(wrong))

    def _move_lookups(self, value: int, nodes: List[int]) -> None:
        """Moves a lookup of ids to the layer of the parameter, e.g. from a decoder to the encoder, or to the first layer if the
        last one has the parameter too."""
        layers = {self._layer[k] for k in nodes}
        home = 0 if len(layers) > 1 and self._count - 1 in layers else min(layers)
        for k in nodes:
            node = self._program.nodes[k]
            if self._layer[k] > home and node.op == "aten::embedding" and node.args[0].value == value:
                needs = {need for other in uses(node)[1:] for need in self._frontiers.of.get(other, frozenset())}
                if all(self._layer_of(need) <= home for need in needs):
                    self._layer[k] = home

    def _layer_of(self, value: int) -> int:
        """The layer that computes a value."""
        if value in self._home:
            return self._home[value]
        made = self._program.made.get(value)
        return 0 if made is None else self._layer[made]

    def _has(self, layer: int, value: int) -> bool:
        """Whether a layer has this parameter or other tensor of the model itself."""
        if value in self._program.trained or value in self._program.statistics:
            return self._home.get(value) == layer or value in self._tied and layer == self._count - 1
        return value in self._program.constants

    # Needs.

    def _find_needs(self, layer: int) -> None:
        nodes = self._nodes[layer]
        made = {value for node in nodes.values() for value in node.results}
        if layer == 0:
            made.update(self._program.inputs.values())
        asked = [value for node in list(nodes.values()) for value in uses(node)]
        if layer == self._count - 1:
            asked += self._program.outputs
        needs: Set[int] = set()
        for value in asked:
            if value not in made and not self._has(layer, value):
                self._frontiers.nodes_for(value, made, nodes, needs)
        used = {value for node in nodes.values() for value in uses(node)}
        again = {value for value in needs if self._has(layer, value)}
        self._needs[layer] = {value for value in needs - again if value in used or value in self._program.outputs}

    def _crossing(self, boundary: int) -> List[BoundaryValue]:
        """The values at a boundary, those that are needed longest first."""
        values = {value for layer in range(boundary + 1, self._count) for value in self._needs[layer] if self._layer_of(value) <= boundary}
        ordered = sorted(values, key=lambda value: (-self._last[value], self._program.order(value)))
        found = [boundary_value(self._program, value) for value in ordered]
        kept = [each for each in found if each is not None]
        if len(kept) < len(found) or not any(each.dtype.is_floating_point for each in kept):
            raise CannotCut([boundary])
        return kept

    # Parts.

    def part(self, layer: int) -> Part:
        program = self._program
        last = layer == self._count - 1
        received: Optional[List[BoundaryValue]] = self.boundaries[layer - 1] if layer else None
        sent = [] if last else self.boundaries[layer]
        nodes = [node for _, node in sorted(self._nodes[layer].items())]
        taken = {each.value for each in received or ()}
        asked = {value for node in nodes for value in uses(node)} | {each.value for each in sent if not each.is_filler}
        outside = {value: program.trained.get(value, program.constants.get(value)) for value in asked
                   if program.is_model_tensor(value) and value not in taken}
        return Part(nodes, received, sent, outside, program.inputs, program.outputs if last else [])  # type: ignore[arg-type]
