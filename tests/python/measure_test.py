"""The costs of a layer that packages contain, against counts by hand."""

from __future__ import annotations

import json
import os
import tempfile
import unittest

import support  # noqa: F401  (finds the package)
import torch
import torch.nn as nn

import motley


class Costs(unittest.TestCase):
    def test_of_two_linear_layers(self) -> None:
        body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        head = nn.Linear(3, 2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "costs.motley")
            motley.export([("body", body), ("head", head)], nn.MSELoss(), (torch.randn(2, 4), torch.randn(2, 2)), path,
                          model=nn.Sequential(body, head))
            with open(os.path.join(path, "package.json"), encoding="utf-8") as file:
                description = json.load(file)
        layer = description["layers"][0]
        memory = description["graphs"][layer["graph"]]["memory"]
        # Backward needs the input (4 floats) and the output of ReLU (8); products of weights wait with the gradient of the output (3).
        self.assertEqual(memory["saved_bytes"], 4 * (4 + 8))
        self.assertEqual(memory["queued_bytes"], 4 * 3)
        self.assertGreaterEqual(memory["workspace_bytes"], 4 * 8)
        products = 2 * (4 * 8 + 8 * 3)
        self.assertEqual(layer["flops_per_sample"], products)
        # The gradient of the weights, and of each layer's input: the model's first input has none.
        self.assertEqual(layer["input_part_flops_per_sample"] + layer["weight_part_flops_per_sample"], products + 2 * 8 * 3)


if __name__ == "__main__":
    unittest.main()
