"""`masked_scatter`, by which multimodal models write the features of an image into the places of its tokens."""

from __future__ import annotations

import unittest
from typing import Any, Dict, Tuple

import torch
import torch.nn as nn

from support import Folder, Function, eager, export_layers, motley
from motley import masked_scatter
from motley.interpret import Package

WIDTH, IDS, PLACEHOLDER, PATCHES, LENGTH = 8, 12, 2, 4, 10


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.mix, self.product = nn.LayerNorm(WIDTH), nn.Linear(LENGTH, LENGTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.product(self.mix(self.norm(x).transpose(1, 2)).transpose(1, 2)).relu()


class Multimodal(nn.Module):
    """As LLaVA: the text has a placeholder for each patch of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.vision, self.embed = nn.Sequential(nn.Linear(6, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)), nn.Embedding(IDS, WIDTH)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(2)), nn.Linear(WIDTH, IDS)

    def forward(self, input_ids: torch.Tensor, pixel_values: torch.Tensor) -> torch.Tensor:
        x = self.embed(input_ids)
        features = torch.cat(list(self.vision(pixel_values)))
        x = x.masked_scatter((input_ids == PLACEHOLDER).unsqueeze(-1).expand_as(x), features)
        for block in self.blocks:
            x = block(x)
        return self.head(x).transpose(1, 2)


def batch(samples: int) -> Tuple[Dict[str, torch.Tensor], torch.Tensor]:
    ids = torch.randint(PLACEHOLDER + 1, IDS, (samples, LENGTH))
    for row in ids:
        row[torch.randperm(LENGTH)[:PATCHES]] = PLACEHOLDER
    return {"input_ids": ids, "pixel_values": torch.randn(samples, PATCHES, 6)}, torch.randint(IDS, (samples, LENGTH))


class MaskedScatter(unittest.TestCase):
    def test_a_model_of_texts_with_images(self) -> None:
        torch.manual_seed(1)
        model = Multimodal()
        with Folder() as folder:
            done = motley.export(model, nn.CrossEntropyLoss(), batch(2), folder.path("x.motley"))
            self.assertGreaterEqual(done.layers, 3)
            package = Package.open(done.path)
            names: Dict[str, Any] = dict(model.named_parameters())
            for samples in (1, 5):
                input, target = batch(samples)
                right = nn.functional.cross_entropy(model(**input), target, reduction="sum")
                step = package.train(input, target)
                self.assertLessEqual(float((step.loss - right).abs() / right), 1e-6)
                for name, gradient in zip(names, torch.autograd.grad(right, list(names.values()))):
                    self.assertLessEqual(float((step.gradients[name] - gradient).abs().max() / gradient.abs().max()), 1e-5, name)

    @unittest.skipUnless(hasattr(torch.ops.aten, "masked_scatter_backward"), "its gradient is no operation before PyTorch 2.1")
    def test_a_layer_by_hand(self) -> None:
        torch.manual_seed(1)
        layer = Function(lambda x: x.masked_scatter(x > 0, x * 3))
        with Folder() as folder:
            done, package = export_layers(folder, [("layer", layer)], torch.randn(2, 5), model=layer)
            self.assertEqual(done.largest_difference, 0)
            input = torch.randn(6, 5)
            value, (gradient,) = eager(layer, [layer.weight], input, torch.zeros(6))
            step = package.train(input, torch.zeros(6))
            self.assertEqual(float(step.loss), float(value))
            self.assertLessEqual(float((step.gradients["weight"] - gradient).abs()), 1e-6 * float(gradient.abs()))

    def test_has_the_bits_of_pytorch(self) -> None:
        torch.manual_seed(1)
        for shape in ((3, 5, 1), (3, 5, 4), (5, 1), (4,)):
            self_, source = torch.randn(3, 5, 4, requires_grad=True), torch.randn(15, 4, requires_grad=True)
            mask = (torch.rand(shape) < 0.4).expand(3, 5, 4)
            right = self_.masked_scatter(mask, source)
            grad = torch.randn(right.shape)
            of_source = torch.autograd.grad(right, source, grad)[0]
            found = masked_scatter.forward(self_, mask, source)
            self.assertTrue(torch.equal(found, right))
            self.assertTrue(torch.equal(torch.autograd.grad(found, source, grad)[0], of_source))
            self.assertTrue(torch.equal(masked_scatter.backward(grad, mask, [15, 4]), of_source))

    def test_is_nan_where_pytorch_raises(self) -> None:
        mask = torch.tensor([[True, False, True], [True, True, False]])
        found = masked_scatter.forward(torch.zeros(2, 3), mask, torch.ones(3))
        self.assertEqual(found.isnan().tolist(), [[False, False, False], [False, True, False]])
        self.assertTrue(bool(masked_scatter.forward(torch.zeros(2, 3), mask, torch.ones(0)).isnan().equal(mask)))


if __name__ == "__main__":
    unittest.main()
