"""The samples of each step of `motley train`, for comparisons with a plain loop (docs/formats/data.md, "Samples of arrays")."""

from __future__ import annotations

from typing import List

_HOLDOUT_KEY = 0x68656C64206F7574
_ORDER_KEY = 0x6F72646572206F66
_ROUNDS = 8
_MASK = (1 << 32) - 1


def samples_of(step: int, batch: int, count: int, seed: int = 1) -> List[int]:
    """The samples of step `step` (0, 1, …), by number. `batch`: samples per step; `count`: all samples, none of which is held
    out; `seed`: train.seed."""
    places = range(step * batch, (step + 1) * batch)
    shuffled = [_permuted(place % count, count, seed ^ _ORDER_KEY, place // count) for place in places]
    return [_permuted(place, count, _HOLDOUT_KEY, 0) for place in shuffled]


def _permuted(index: int, count: int, key: int, stream: int) -> int:
    """Place `index` of a permutation of 0 … count - 1: a Feistel network with cycle walking."""
    half_bits = max(1, ((count - 1).bit_length() + 1) // 2)
    mask = (1 << half_bits) - 1
    while True:
        left, right = index >> half_bits, index & mask
        for turn in range(_ROUNDS):
            left, right = right, left ^ (_philox(key, stream, turn << 32 | right) & mask)
        index = left << half_bits | right
        if index < count:
            return index


def _philox(key: int, stream: int, block: int) -> int:
    """The first word of Philox4x32-10."""
    a, b, c, d = block & _MASK, block >> 32, stream & _MASK, stream >> 32
    key_a, key_b = key & _MASK, key >> 32
    for _ in range(10):
        first, second = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (second >> 32) ^ b ^ key_a, second & _MASK, (first >> 32) ^ d ^ key_b, first & _MASK
        key_a, key_b = (key_a + 0x9E3779B9) & _MASK, (key_b + 0xBB67AE85) & _MASK
    return a
