"""Quantises matrices to 8 or 4 bits, with the operations that dequantise them (docs/formats/package.md, "Quantised weights")."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import torch

from .graph import Ref

KINDS = ("int8", "int4", "nf4")

BLOCK = 64
"""The consecutive elements, in row-major order, that share one scale in 4 bits."""

NF4 = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)
"""The values of QLoRA (arXiv 2305.14314, appendix E): quantiles of the normal distribution, divided by the largest."""

INT4 = tuple(float(code - 8) for code in range(16))
"""-8 is not used, so that the range is symmetric."""

_PART = 1 << 20
"""The elements quantised at once, to limit the temporary memory for a large matrix."""


class Step(NamedTuple):
    """An operation. `Ref(k)` among its arguments is part k, or, after the last part, the result of an earlier step."""

    op: str
    args: Tuple[Any, ...]
    kwargs: Dict[str, Any]
    shape: Tuple[int, ...]
    dtype: torch.dtype = torch.float32


class Quantised(NamedTuple):
    parts: Dict[str, torch.Tensor]
    """`codes`, `scales` and, in 4 bits, `table`: [byte of codes] the two values that it represents."""
    steps: List[Step]


def quantise(matrix: torch.Tensor, kind: str, outputs: int) -> Quantised:
    """`matrix` quantised to one of KINDS. `outputs`: the dimension of the layer's outputs; int8 has one scale per output.
    REQUIRES: two dimensions, floats, all finite."""
    return _int8(matrix, outputs) if kind == "int8" else _four_bits(matrix, kind)


def steps_of(shape: Tuple[int, int], blocks: int) -> List[Step]:
    """The operations that dequantise a matrix; `blocks` is 0 in 8 bits."""
    if not blocks:
        return [Step("aten::_to_copy", (Ref(0),), {"dtype": torch.float32}, shape),
                Step("aten::mul.Tensor", (Ref(2), Ref(1)), {}, shape)]
    count = shape[0] * shape[1]
    steps = [Step("aten::_to_copy", (Ref(0),), {"dtype": torch.int64}, (blocks, BLOCK // 2), torch.int64),
             Step("aten::embedding", (Ref(2), Ref(3)), {}, (blocks, BLOCK // 2, 2)),
             Step("aten::view", (Ref(4), [blocks, BLOCK]), {}, (blocks, BLOCK)),
             Step("aten::mul.Tensor", (Ref(5), Ref(1)), {}, (blocks, BLOCK))]
    if count != blocks * BLOCK:
        steps += [Step("aten::view", (Ref(6), [blocks * BLOCK]), {}, (blocks * BLOCK,)),
                  Step("aten::slice.Tensor", (Ref(7), 0, 0, count), {}, (count,))]
    return steps + [Step("aten::view", (Ref(2 + len(steps)), list(shape)), {}, shape)]


def row_blocks(matrix: torch.Tensor, width: int) -> List[Tuple[int, int]]:
    """Ranges of the rows of `matrix`, each row with `width` elements, that are processed at once."""
    rows = max(1, _PART // width)
    return [(begin, min(begin + rows, matrix.size(0))) for begin in range(0, matrix.size(0), rows)]


def _divisors(scales: torch.Tensor) -> torch.Tensor:
    return torch.where(scales > 0, scales, torch.ones_like(scales))


def _int8(matrix: torch.Tensor, outputs: int) -> Quantised:
    parts = row_blocks(matrix, matrix.size(1))
    largest = [matrix[begin:end].float().abs().amax(1 - outputs, keepdim=True) for begin, end in parts]
    scales = (torch.cat(largest) if outputs == 0 else torch.stack(largest).amax(0)) / 127
    codes = torch.empty(matrix.shape, dtype=torch.int8)
    for begin, end in parts:
        own = _divisors(scales[begin:end] if outputs == 0 else scales)
        codes[begin:end] = (matrix[begin:end].float() / own).round().clamp(-127, 127).to(torch.int8)
    return Quantised({"codes": codes, "scales": scales}, steps_of(tuple(matrix.shape), 0))  # type: ignore[arg-type]


def _four_bits(matrix: torch.Tensor, kind: str) -> Quantised:
    numbers, codes_of, largest_code = (NF4, _nf4_codes, 1.0) if kind == "nf4" else (INT4, _int4_codes, 7.0)
    flat = matrix.reshape(-1)
    blocks = -(-flat.numel() // BLOCK)
    codes = torch.empty(blocks, BLOCK // 2, dtype=torch.uint8)
    scales = torch.empty(blocks, 1)
    for begin, end in row_blocks(scales, BLOCK):
        own = torch.zeros((end - begin) * BLOCK)
        given = flat[begin * BLOCK:end * BLOCK]
        own[:given.numel()] = given
        own = own.view(-1, BLOCK)
        scales[begin:end] = own.abs().amax(1, keepdim=True) / largest_code
        found = codes_of(own / _divisors(scales[begin:end]))
        codes[begin:end] = found[:, 0::2] * 16 + found[:, 1::2]
    numbers_of = torch.tensor(numbers)
    table = torch.stack([numbers_of.repeat_interleave(16), numbers_of.repeat(16)], 1)
    return Quantised({"codes": codes, "scales": scales, "table": table}, steps_of(tuple(matrix.shape), blocks))  # type: ignore[arg-type]


def _int4_codes(x: torch.Tensor) -> torch.Tensor:
    return (x.round().clamp(-7, 7) + 8).to(torch.uint8)


def _nf4_codes(x: torch.Tensor) -> torch.Tensor:
    numbers = torch.tensor(NF4)
    return torch.bucketize(x, (numbers[1:] + numbers[:-1]) / 2).to(torch.uint8)


def dequantised(parts: Dict[str, torch.Tensor], steps: List[Step], run: Callable[[Step, List[torch.Tensor]], torch.Tensor]) -> torch.Tensor:
    """The float32 values: `run` computes each step from the parts and earlier results."""
    values = list(parts.values())
    for step in steps:
        values.append(run(step, values))
    return values[-1]
