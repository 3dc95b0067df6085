#!/usr/bin/env python3
"""The quantised bases of `base=`, compared with those of bitsandbytes on a processor.

    pip install torch bitsandbytes
    PYTHONPATH=python python3 examples/adapters/compare_bitsandbytes.py

For matrices of normally distributed numbers, some with outliers, in float32 and float16, prints
- nf4: how many codes, scales and dequantised values differ. None may: both take the nearest of the same 16 numbers, per block of 64.
- int8: how many codes differ. Motley divides by the scale, bitsandbytes multiplies by its reciprocal, and both round twice, by 2^-24
  of up to 127 steps. So a code may differ by 1, where the number is within 127 · 2^-22 steps of the middle of two codes.
- the largest difference of a layer's result from the product with Motley's dequantised values, relative to its bound: in 4 bits, without
  quantised scales, that of two sums of N products in another order, 2 (N + 1) 2^-24 of the sum of absolute products; in 8 bits
  bitsandbytes also rounds inputs, to 127 steps of the largest number of their row, and results, to float16.

The exit status is 1 if a difference is larger.
"""

from __future__ import annotations

import sys
import warnings
from typing import Iterator, List, Tuple

import bitsandbytes
import torch
from bitsandbytes import functional

from motley import interpret, quantise
from motley.graph import Node

FP32, FP16 = 2.0 ** -24, 2.0 ** -11
"""Half the distance of two numbers, relative to them."""

NEAR_THE_MIDDLE = 127 * 2.0 ** -22


def matrices() -> Iterator[Tuple[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(3)
    for shape in ((128, 192), (1024, 256), (64, 4096)):
        plain = torch.randn(shape, generator=generator)
        heavy = plain.clone()
        heavy[::7, 5] *= 40
        for name, matrix in (("normal", plain), ("outliers", heavy)):
            yield f"{name} {shape[0]} x {shape[1]}", matrix.half().float()  # the 8-bit kernel of bitsandbytes takes float16


def values_of(quantised: quantise.Quantised) -> torch.Tensor:
    """What a package computes from the parts."""
    def run(step: quantise.Step, values: List[torch.Tensor]) -> torch.Tensor:
        (result,) = interpret.run_node(Node(step.op, step.args, step.kwargs, (len(values),)), dict(enumerate(values)), samples=1)
        assert result is not None
        return result
    return quantise.dequantised(quantised.parts, quantised.steps, run)


def four_bits(matrix: torch.Tensor) -> Tuple[bool, str]:
    made = quantise.quantise(matrix, "nf4", 0)
    codes, state = functional.quantize_4bit(matrix, blocksize=quantise.BLOCK, quant_type="nf4")
    values = values_of(made)
    differ = [int((codes.flatten() != made.parts["codes"].flatten()).sum()), int((state.absmax != made.parts["scales"].flatten()).sum()),
              int((functional.dequantize_4bit(codes, state) != values).sum())]
    layer = bitsandbytes.nn.Linear4bit(matrix.size(1), matrix.size(0), bias=False, compute_dtype=torch.float32, quant_type="nf4",
                                        compress_statistics=False)
    layer.load_state_dict({"weight": matrix})
    inputs = torch.randn(5, matrix.size(1))
    right = inputs @ values.t()
    bound = 2 * (matrix.size(1) + 1) * FP32 * (inputs.abs() @ values.abs().t())
    used = float(((layer.to("cpu")(inputs) - right).abs() / bound).max())
    return not any(differ) and used <= 1, f"nf4 {differ[0]} codes, {differ[1]} scales and {differ[2]} values differ; results {used:.2f} of the bound"


def eight_bits(matrix: torch.Tensor) -> Tuple[bool, str]:
    made = quantise.quantise(matrix, "int8", 0)
    codes, largest, _ = functional.int8_vectorwise_quant(matrix.half())
    apart = codes.int() - made.parts["codes"].int()
    steps = matrix.double() / (largest.double() / 127).unsqueeze(1)
    from_middle = ((steps - steps.floor()) - 0.5).abs()
    is_right = int(apart.abs().max()) <= 1 and bool((from_middle[apart != 0] <= NEAR_THE_MIDDLE).all())
    layer = bitsandbytes.nn.Linear8bitLt(matrix.size(1), matrix.size(0), bias=False, has_fp16_weights=False)
    layer.load_state_dict({"weight": matrix})
    inputs, values = torch.randn(5, matrix.size(1)).half(), values_of(made)
    right = inputs.float() @ values.t()
    half_steps = inputs.float().abs().amax(1, keepdim=True) / 254
    of_codes = made.parts["scales"].t() * (inputs.float().abs() @ (apart != 0).float().t())
    bound = (1 + 2 * FP16) * half_steps * values.abs().sum(1) + of_codes + FP16 * right.abs()
    used = float(((layer.to("cpu")(inputs).float() - right).abs() / bound).max())
    return is_right and used <= 1, f"int8 {int((apart != 0).sum())} of {apart.numel()} codes differ, by 1; results {used:.2f} of the bound"


def main() -> int:
    if {"-h", "--help"} & set(sys.argv):
        print(__doc__)
        return 0
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    print(f"bitsandbytes {bitsandbytes.__version__}, torch {torch.__version__}")
    wrong = 0
    for name, matrix in matrices():
        for is_right, text in (four_bits(matrix), eight_bits(matrix)):
            wrong += not is_right
            print(f"{'ok ' if is_right else 'OFF'} {name}: {text}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
