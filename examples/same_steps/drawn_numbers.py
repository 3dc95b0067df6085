"""The random numbers that a model of `motley train` draws, for comparisons with a plain loop (docs/formats/package.md, "Drawn numbers")."""

from __future__ import annotations

from typing import Any, List, NamedTuple, Tuple

import numpy
import torch

from motley import quantiles, random_numbers

_KEY = 0x6E756D6265727321
_MASK = (1 << 32) - 1
_LOW = numpy.uint64(_MASK)
_ROUNDS, _KEY_STEPS = 10, (0x9E3779B9, 0xBB67AE85)
_MULTIPLIERS = numpy.uint64(0xD2511F53), numpy.uint64(0xCD9E8D57)
_WORDS, _BLOCKS = 64, 16  # of a tile


class Draw(NamedTuple):
    """One draw of a layer. `step`: 1 in the first step, 0 in an evaluation; `index`: 0 for the layer's first draw, then 1, …"""

    step: int
    layer: int
    index: int
    seed: int = 1

    def normal(self, size: Tuple[int, ...]) -> torch.Tensor:
        """The numbers of all samples of the step; the first dimension is that of the samples."""
        return torch.from_numpy(quantiles.normal(self._words(int(numpy.prod(size)))).astype(numpy.float32)).view(size)

    def integers(self, size: Tuple[int, ...], high: int) -> torch.Tensor:
        words = self._words(2 * int(numpy.prod(size)))
        return torch.from_numpy(random_numbers.scaled(words[::2] << numpy.uint64(32) | words[1::2], 0, high)).view(size)

    def _words(self, count: int) -> Any:
        """The first `count` words of the stream."""
        tile, within = numpy.divmod(numpy.arange(count, dtype=numpy.int64), _WORDS)
        row, column = numpy.divmod(within, _BLOCKS)
        block = tile * _BLOCKS + column
        counter = [block & _MASK, self.step, block >> 32, 256 * self.layer + self.index]
        return numpy.choose(row, _philox(self.seed ^ _KEY, [numpy.zeros_like(block) + x for x in counter]))


def _philox(key: int, counter: List[Any]) -> List[Any]:
    """The four words of each block of Philox4x32-10."""
    a, b, c, d = (x.astype(numpy.uint64) for x in counter)
    keys, half = [key & _MASK, key >> 32], numpy.uint64(32)
    for _ in range(_ROUNDS):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = second >> half ^ b ^ numpy.uint64(keys[0]), second & _LOW, first >> half ^ d ^ numpy.uint64(keys[1]), first & _LOW
        keys = [(k + by) & _MASK for k, by in zip(keys, _KEY_STEPS)]
    return [a, b, c, d]
