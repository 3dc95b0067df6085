"""Generates images of 16 × 16 pixels with a digit of random position, size, slant and brightness, and noise."""

from __future__ import annotations

from typing import Tuple

import torch
import torch.nn.functional as F

GLYPHS = ("0e 11 13 15 19 11 0e", "04 0c 04 04 04 04 0e", "0e 11 01 02 04 08 1f", "1f 02 04 02 01 11 0e", "02 06 0a 12 1f 02 02",
          "1f 10 1e 01 01 11 0e", "06 08 10 1e 11 11 0e", "1f 01 02 04 08 08 08", "0e 11 11 0e 11 11 0e", "0e 11 11 0f 01 02 0c")


def drawn_digits(count: int, seed: int = 0) -> Tuple[torch.Tensor, torch.Tensor]:
    """`count` images [count, 1, 16, 16] with values of about 0 to 1, and their digits [count]; the same for a seed."""
    random = torch.Generator().manual_seed(seed)
    rows = [[int(row, 16) for row in glyph.split()] for glyph in GLYPHS]
    glyphs = torch.tensor([[[float(row >> (4 - x) & 1) for x in range(5)] for row in glyph] for glyph in rows])
    labels = torch.randint(10, (count,), generator=random)
    scale, slant, x, y, ink = (torch.rand(5, count, generator=random) * torch.tensor([[0.8], [0.8], [0.8], [0.8], [0.6]])
                               + torch.tensor([[1.2], [-0.4], [-0.4], [-0.4], [0.4]]))
    zero = torch.zeros(count)
    theta = torch.stack([torch.stack([scale * 1.4, slant, x], 1), torch.stack([zero, scale, y], 1)], 1)
    where = F.affine_grid(theta, [count, 1, 16, 16], align_corners=False)
    images = F.grid_sample(glyphs[labels].unsqueeze(1), where, align_corners=False)
    return images * ink[:, None, None, None] + 0.15 * torch.randn(count, 1, 16, 16, generator=random), labels
