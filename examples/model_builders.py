"""Small models of transformers, torchvision, timm, peft, diffusers and PyTorch, with random weights, and batches for them."""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, NamedTuple, Optional

import torch
import torch.nn as nn

VOCABULARY, CLASSES, LENGTH = 96, 10, 12

Batch = Callable[[int], torch.Tensor]


class Entry(NamedTuple):
    """A model to split."""

    make: Callable[[], nn.Module]
    batch: Batch
    blocks: int
    forward: Optional[Callable[[nn.Module], Callable[[torch.Tensor], Any]]] = None
    loss: str = "tokens"
    refused: str = ""
    """A part of the expected refusal; empty if none is expected."""
    draws: bool = False
    """Whether it draws random numbers. Those of a package are Motley's own, so its layers are compared with eager PyTorch
    instead."""


def ids(length: int = LENGTH, low: int = 3) -> Batch:
    return lambda n: torch.randint(low, VOCABULARY, (n, length))


def images(size: int, channels: int = 3) -> Batch:
    return lambda n: torch.randn(n, channels, size, size)


def with_mask(n: int) -> torch.Tensor:
    """Ids and their mask; each row ends with padding."""
    mask = torch.ones(n, LENGTH, dtype=torch.int64)
    for row in range(n):
        mask[row, LENGTH - 1 - row % 4:] = 0
    return torch.stack([torch.randint(3, VOCABULARY, (n, LENGTH)) * mask, mask], 1)


def of(library: str, name: str) -> Any:
    return getattr(importlib.import_module(library), name)


def language(kind: str, config: str, **options: Any) -> Callable[[], nn.Module]:
    """A model of transformers."""
    def make() -> nn.Module:
        common: Dict[str, Any] = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4,
                                      max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
        common.update(options)
        return of("transformers", kind)(of("transformers", config)(**{key: value for key, value in common.items() if value is not None}))
    return make


def vision(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: getattr(of("torchvision", "models"), name)(weights=None, num_classes=CLASSES, **options)


def segmentation(name: str) -> Callable[[], nn.Module]:
    return lambda: getattr(importlib.import_module("torchvision.models.segmentation"), name)(
        weights=None, weights_backbone=None, num_classes=CLASSES)


def timm(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: of("timm", "create_model")(name, pretrained=False, num_classes=CLASSES, **options)


def masked(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    return lambda t: model(input_ids=t[:, 0], attention_mask=t[:, 1]).logits


def two_sequences(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    return lambda t: model(input_ids=t[:, :LENGTH], decoder_input_ids=t[:, LENGTH:], use_cache=False).logits


def audio_and_ids(n: int) -> torch.Tensor:
    return torch.cat([torch.randn(n, 16 * 40), torch.randint(3, VOCABULARY, (n, 8)).float()], 1)


def whisper(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    return lambda t: model(input_features=t[:, :640].reshape(-1, 16, 40), decoder_input_ids=t[:, 640:].long().clamp(0, VOCABULARY - 1), use_cache=False).logits


def picture_and_time(n: int) -> torch.Tensor:
    x = torch.randn(n, 4, 16, 16)
    x[:, 3] = torch.randint(1000, (n, 1, 1)).float()
    return x


def unet(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    return lambda t: model(t[:, :3], t[:, 3, 0, 0]).sample


def conditioned(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    return lambda t: model(t[:, :3], t[:, 3, 0, 0], encoder_hidden_states=t[:, 2, 1:5, :].repeat(1, 1, 2)).sample


def dit(model: nn.Module) -> Callable[[torch.Tensor], Any]:
    return lambda t: model(t[:, :3], timestep=t[:, 3, 0, 0], class_labels=t[:, 3, 0, 0].long() % CLASSES).sample


class Seq(nn.Module):
    """nn.Transformer with two sequences packed into one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 32)
        self.body = nn.Transformer(32, 4, 2, 2, 64, batch_first=True)
        self.head = nn.Linear(32, VOCABULARY)

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        mask = torch.full((LENGTH, LENGTH), float("-inf")).triu(1)
        return self.head(self.body(self.embed(t[:, :LENGTH]), self.embed(t[:, LENGTH:]), tgt_mask=mask))


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, 16)
        self.body = getattr(nn, kind)(16, 16, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(16, VOCABULARY)

    def forward(self, t: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.embed(t))[0])


def lora() -> nn.Module:
    base = language("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2)()
    model = of("peft", "get_peft_model")(base, of("peft", "LoraConfig")(r=4, target_modules=["q_proj", "v_proj"]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.02)
    return model


def clip_text() -> nn.Module:
    return of("transformers", "CLIPTextModelWithProjection")(of("transformers", "CLIPTextConfig")(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, max_position_embeddings=32,
        projection_dim=16, pad_token_id=0, bos_token_id=1, eos_token_id=2))


def clip_image() -> nn.Module:
    return of("transformers", "CLIPVisionModelWithProjection")(of("transformers", "CLIPVisionConfig")(
        hidden_size=32, intermediate_size=64, num_hidden_layers=3, num_attention_heads=4, image_size=32, patch_size=8, projection_dim=16))


def diffusion(name: str, **options: Any) -> Callable[[], nn.Module]:
    return lambda: of("diffusers", name)(**options)
