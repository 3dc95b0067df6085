"""Quantised matrices: their error bounds, and the equality of their dequantisation with a table lookup."""

from __future__ import annotations

import unittest
from typing import Iterator, List

import support  # noqa: F401  (finds the package)
import torch

from motley import interpret, quantise
from motley.graph import Node, uses
from motley.quantise import BLOCK, INT4, NF4, Quantised, Step


def values_of(quantised: Quantised) -> torch.Tensor:
    def run(step: Step, values: List[torch.Tensor]) -> torch.Tensor:
        node = Node(step.op, step.args, step.kwargs, (len(values),))
        (result,) = interpret.run_node(node, {value: values[value] for value in uses(node)}, samples=1)
        assert result is not None and tuple(result.shape) == tuple(step.shape) and result.dtype == step.dtype
        return result
    return quantise.dequantised(quantised.parts, quantised.steps, run)


def matrices() -> Iterator[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    for shape in ((64, 64), (33, 130), (7, 1), (1, 65), (200, 48)):
        for scale in (1.0, 1e-30, 1e30):
            yield torch.randn(shape, generator=generator) * scale
    heavy = torch.randn(40, 96, generator=generator)
    heavy[3, 5], heavy[7], heavy[:, 11] = 1e6, 0.0, 0.0
    yield heavy
    yield torch.zeros(9, 70)
    yield torch.randn(50, 70, generator=generator).bfloat16()
    yield torch.randn(50, 70, generator=generator).half()
    yield torch.full((5, 80), 1e-42)  # scales are denormal or 0


def nibbles(codes: torch.Tensor) -> torch.Tensor:
    """The 4-bit codes, the upper one of each byte first; one row per block."""
    wide = codes.long()
    return torch.stack([wide // 16, wide % 16], 2).reshape(codes.size(0), BLOCK)


def in_blocks(matrix: torch.Tensor) -> torch.Tensor:
    flat = matrix.float().reshape(-1)
    return torch.cat([flat, torch.zeros(-flat.numel() % BLOCK)]).view(-1, BLOCK)


class EightBits(unittest.TestCase):
    def test_are_within_half_a_step(self) -> None:
        for matrix in matrices():
            for outputs in (0, 1):
                made = quantise.quantise(matrix, "int8", outputs)
                scales, codes = made.parts["scales"], made.parts["codes"]
                self.assertEqual(tuple(scales.shape), (matrix.size(0), 1) if outputs == 0 else (1, matrix.size(1)))
                self.assertLessEqual(int(codes.long().abs().max()), 127)
                apart = (values_of(made).double() - matrix.double()).abs()
                # The division and the product round once each, by 2^-24 of up to 127 steps.
                limit = scales.double() * (0.5 + 127 * 2.0 ** -23) + 2.0 ** -149 * 64
                self.assertTrue(bool((apart <= limit).all()))

    def test_reach_the_largest_number_of_each_output(self) -> None:
        matrix = torch.tensor([[1.0, -2.0, 0.5], [0.0, 0.0, 0.0]])
        made = quantise.quantise(matrix, "int8", 0)
        self.assertEqual(made.parts["codes"].tolist(), [[64, -127, 32], [0, 0, 0]])
        self.assertTrue(torch.equal(values_of(made)[0, 1], torch.tensor(-2.0)))


class FourBits(unittest.TestCase):
    def test_are_the_nearest_numbers_of_the_table(self) -> None:
        table = torch.tensor(NF4).double()
        for matrix in matrices():
            made = quantise.quantise(matrix, "nf4", 0)
            blocks, scales = in_blocks(matrix), made.parts["scales"]
            self.assertTrue(torch.equal(scales, blocks.abs().amax(1, keepdim=True)))
            x = (blocks / torch.where(scales > 0, scales, torch.ones(()))).double()
            away = (x.unsqueeze(-1) - table).abs()
            taken = away.gather(2, nibbles(made.parts["codes"]).unsqueeze(-1)).squeeze(-1)
            self.assertTrue(bool((taken <= away.amin(2) + 2.0 ** -23).all()))

    def test_of_int4_are_within_half_a_step(self) -> None:
        for matrix in matrices():
            made = quantise.quantise(matrix, "int4", 0)
            codes = nibbles(made.parts["codes"])
            self.assertGreaterEqual(int(codes.min()), 1)
            apart = (in_blocks(values_of(made)).double() - in_blocks(matrix).double()).abs()
            self.assertTrue(bool((apart <= made.parts["scales"].double() * (0.5 + 7 * 2.0 ** -23) + 2.0 ** -149 * 8).all()))

    def test_give_what_a_lookup_of_each_code_gives(self) -> None:
        for kind, numbers in (("nf4", NF4), ("int4", INT4)):
            for matrix in matrices():
                made = quantise.quantise(matrix, kind, 0)
                right = torch.tensor(numbers)[nibbles(made.parts["codes"])] * made.parts["scales"]
                self.assertTrue(torch.equal(values_of(made), right.reshape(-1)[:matrix.numel()].view(matrix.shape)), kind)

    def test_take_half_a_byte_and_a_scale_of_64(self) -> None:
        made = quantise.quantise(torch.randn(128, 256), "nf4", 0)
        self.assertEqual(_bytes(made.parts["codes"]), 128 * 256 // 2)
        self.assertEqual(_bytes(made.parts["scales"]), 128 * 256 // 64 * 4)

    def test_do_not_depend_on_how_many_are_made_at_once(self) -> None:
        matrix = torch.randn(300, 130, generator=torch.Generator().manual_seed(1))
        for kind in quantise.KINDS:
            for outputs in (0, 1):
                whole = quantise.quantise(matrix, kind, outputs)
                before = quantise._PART
                try:
                    quantise._PART = 640
                    parts = quantise.quantise(matrix, kind, outputs)
                finally:
                    quantise._PART = before
                for key, tensor in whole.parts.items():
                    self.assertTrue(torch.equal(tensor, parts.parts[key]), (kind, key))

    def test_have_the_numbers_of_the_paper(self) -> None:
        self.assertEqual((len(NF4), NF4[7], NF4[0], NF4[15]), (16, 0.0, -1.0, 1.0))
        self.assertEqual(list(NF4), sorted(NF4))
        self.assertTrue(all(float(torch.tensor(number)) == number for number in NF4))  # float32, exactly


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


if __name__ == "__main__":
    unittest.main()
