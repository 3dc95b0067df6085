"""Matches the random draws of a model with those of its layers."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

from .draws import Draw


class Matched(NamedTuple):
    order: List[int]
    """[draw of the layers] the matching draw of the model; arbitrary for an unused draw."""
    models: List[Draw]
    """Draws of the model that the layers lack."""
    layers: List[Draw]
    """Draws of the layers that the model lacks."""


def matched(right: List[Draw], found: List[Draw], recorded: Optional[Sequence[int]] = None) -> Matched:
    """Matches draws of equal kind and shape: in order within a module first, then with the next unmatched draw. `recorded`: the
    indices that the layers' draws had in the recording of the model; results do not depend on the other draws."""
    if recorded is not None and len(recorded) == len(found) and all(k < len(right) and right[k]._replace(module=draw.module) == draw
                                                                    for k, draw in zip(recorded, found)):
        return Matched(list(recorded), [], [])
    free = dict(enumerate(right))
    order: List[Optional[int]] = [None] * len(found)
    for by_module in (True, False):
        for k, draw in enumerate(found):
            if order[k] is None:
                order[k] = next((j for j, other in free.items() if other._replace(module=draw.module) == draw
                                 and (not by_module or other.module == draw.module)), None)
                free.pop(order[k], None)  # type: ignore[arg-type]
    return Matched([0 if j is None else j for j in order], [draw for draw in free.values() if draw.used],
                   [draw for draw, j in zip(found, order) if j is None and draw.used])
