"""torchvision's ResNet: the stem, each residual block, and the classifier."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

from ..layers import Call
from .attention import has


def knows(model: Any) -> bool:
    return has(model, "conv1", "bn1", "relu", "layer1", "layer2", "avgpool", "fc")


def layers(model: Any) -> List[Tuple[str, Call]]:
    def stem(x: torch.Tensor) -> torch.Tensor:
        x = model.relu(model.bn1(model.conv1(x)))
        return model.maxpool(x) if has(model, "maxpool") else x

    found: List[Tuple[str, Call]] = [("conv1", stem)]
    for stage in ("layer1", "layer2", "layer3", "layer4"):
        for name, block in getattr(model, stage, torch.nn.Sequential())._modules.items():
            found.append((f"{stage}.{name}", block))
    return found + [("fc", lambda x: model.fc(torch.flatten(model.avgpool(x), 1)))]
