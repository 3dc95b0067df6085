#!/usr/bin/env python3
"""Writes tests/data/golden/augmentation.txt: changes of one image by torchvision. Needs torch and torchvision.

The image has values i * 37 % 256 / 255 in 3 × 5 × 7. Each line: a name, its parameters, then 105 values.
"""
import pathlib

import torch
import torchvision.transforms.v2.functional as F
from torchvision.transforms import RandomResizedCrop

image = (torch.arange(3 * 5 * 7) * 37 % 256).reshape(3, 5, 7).float() / 255
lines = []


def write(name, parameters, result):
    lines.append(" ".join([name, *map(str, parameters), *(f"{value:.9g}" for value in result.reshape(-1).tolist())]))


for top, left, height, width in ((0, 0, 5, 7), (1, 2, 3, 4), (4, 6, 1, 1), (2, 0, 2, 7)):
    write("box", (top, left, height, width), F.resized_crop(image, top, left, height, width, [5, 7], antialias=True))
for factor in (0.6, 1.4):
    write("brightness", (factor,), F.adjust_brightness(image, factor))
    write("contrast", (factor,), F.adjust_contrast(image, factor))
    write("saturation", (factor,), F.adjust_saturation(image, factor))
(pathlib.Path(__file__).parent.parent / "golden" / "augmentation.txt").write_text("\n".join(lines) + "\n")

torch.manual_seed(0)
boxes = [RandomResizedCrop.get_params(torch.zeros(3, 96, 128), (0.08, 1), (3 / 4, 4 / 3)) for _ in range(20000)]
print(f"mean share of RandomResizedCrop at 96 x 128: {sum(h * w for _, _, h, w in boxes) / len(boxes) / 96 / 128:.4f}")
