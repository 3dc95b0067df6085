"""torchvision's VisionTransformer: patches, attention and MLP of each block, and the head."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch

from ..layers import Call
from .attention import has


def knows(model: Any) -> bool:
    return has(model, "conv_proj", "class_token", "encoder.pos_embedding", "encoder.layers", "encoder.ln", "heads") and all(
        has(block, "ln_1", "self_attention", "dropout", "ln_2", "mlp") for block in model.encoder.layers)


def layers(model: Any) -> List[Tuple[str, Call]]:
    encoder = model.encoder

    def patches(images: torch.Tensor) -> torch.Tensor:
        x = model.conv_proj(images).flatten(2).permute(0, 2, 1)
        x = torch.cat([model.class_token.expand(x.size(0), -1, -1), x], dim=1)
        return encoder.dropout(x + encoder.pos_embedding)

    def attend(block: Any) -> Call:
        def run(x: torch.Tensor) -> torch.Tensor:
            y = block.ln_1(x)
            return block.dropout(block.self_attention(y, y, y, need_weights=False)[0]) + x
        return run

    def transform(block: Any) -> Call:
        return lambda x: x + block.mlp(block.ln_2(x))

    found: List[Tuple[str, Call]] = [("conv_proj", patches)]
    for name, block in encoder.layers._modules.items():
        path = f"encoder.layers.{name}"
        found += [(f"{path}.self_attention", attend(block)), (f"{path}.mlp", transform(block))]
    return found + [("heads", lambda x: model.heads(encoder.ln(x)[:, 0]))]
