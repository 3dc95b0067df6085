"""Packs documents into rows: best fit decreasing, with the same result as trl's `packing_strategy="bfd"`."""

from __future__ import annotations

import bisect
from collections import defaultdict, deque
from typing import DefaultDict, Deque, List, Sequence


def packed(lengths: Sequence[int], capacity: int) -> List[List[int]]:
    """The numbers of the documents of each row. `lengths`: 1 to `capacity`. Each goes into the fullest row that has space for it, in the
    order of falling lengths."""
    rows: List[List[int]] = []
    spaces: List[int] = []  # ascending, each once
    with_space: DefaultDict[int, Deque[int]] = defaultdict(deque)
    for number in sorted(range(len(lengths)), key=lambda k: -lengths[k]):
        length = lengths[number]
        place = bisect.bisect_left(spaces, length)
        if place < len(spaces):
            space = spaces[place]
            row = with_space[space].popleft()
            if not with_space[space]:
                del spaces[place]
        else:
            space, row = capacity, len(rows)
            rows.append([])
        rows[row].append(number)
        space -= length
        if space > 0:
            if not with_space[space]:
                bisect.insort(spaces, space)
            with_space[space].append(row)
    return rows
