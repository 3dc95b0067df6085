"""Small models with random weights, each with data: three causal language models, a BERT, a ViT and a diffusion transformer."""

from __future__ import annotations

import os
import sys
from typing import Callable, Dict, List, NamedTuple, Optional

import torch
import torch.nn as nn
import transformers

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "diffusion"))

from denoisers import DiffusionTransformer  # noqa: E402

WORDS, LENGTH, WIDTH, SAMPLES = 256, 16, 64, 24


class Case(NamedTuple):
    model: nn.Module
    task: Optional[str]
    """`task_type` of peft."""
    attention: List[str]
    """The projections of queries and values."""
    inputs: torch.Tensor
    targets: torch.Tensor
    loss: nn.Module
    forward: Callable[[nn.Module, torch.Tensor], torch.Tensor]
    """Calls the model, or one with adapters around it, with inputs."""

    def linear(self) -> List[str]:
        """All linear layers but the head."""
        names = [name for name, module in self.model.named_modules() if isinstance(module, nn.Linear)]
        return [name for name in names if name not in ("lm_head", "classifier", "final")]


def case(name: str) -> Case:
    torch.manual_seed(1)
    return CASES[name]()


def _language_model(model: nn.Module) -> Case:
    """Texts padded on the right: ids and attention mask in one tensor, and labels with -100 where there is no text."""
    packed, labels = _texts()
    return Case(model, "CAUSAL_LM", ["q_proj", "v_proj"], packed, labels, nn.CrossEntropyLoss(), _with_mask)


def _texts() -> "tuple[torch.Tensor, torch.Tensor]":
    """[samples, 2, LENGTH] and [samples, LENGTH]; each text has words of a few kinds, so that there is something to learn."""
    ids = torch.randint(3, WORDS // 8, (SAMPLES, LENGTH + 1)) * 8
    mask = (torch.arange(LENGTH) < torch.randint(LENGTH // 2, LENGTH + 1, (SAMPLES, 1))).long()
    return torch.stack([ids[:, :-1] * mask, mask], 1), torch.where(mask == 1, ids[:, 1:], -100)


def _with_mask(model: nn.Module, packed: torch.Tensor) -> torch.Tensor:
    return model(input_ids=packed[:, 0], attention_mask=packed[:, 1]).logits


def _sizes(**more: object) -> Dict[str, object]:
    return {"vocab_size": WORDS, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 2,
            "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0, **more}


def llama() -> Case:
    return _language_model(transformers.LlamaForCausalLM(transformers.LlamaConfig(**_sizes(num_key_value_heads=2))))


def qwen3() -> Case:
    return _language_model(transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**_sizes(num_key_value_heads=2, head_dim=16))))


def gemma3() -> Case:
    config = transformers.Gemma3TextConfig(**_sizes(num_key_value_heads=2, head_dim=16, sliding_window=8,
                                                    layer_types=["sliding_attention", "full_attention"]))
    return _language_model(transformers.Gemma3ForCausalLM(config))


def bert() -> Case:
    config = transformers.BertConfig(**_sizes(num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))
    packed, _ = _texts()
    model = transformers.BertForSequenceClassification(config)
    return Case(model, "SEQ_CLS", ["query", "value"], packed, torch.randint(3, (SAMPLES,)), nn.CrossEntropyLoss(), _with_mask)


def vit() -> Case:
    config = transformers.ViTConfig(hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=2, num_attention_heads=4,
                                    image_size=16, patch_size=4, num_labels=5)
    model = transformers.ViTForImageClassification(config)
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}  # of this version of transformers
    attention = ["q_proj", "v_proj"] if "q_proj" in names else ["query", "value"]
    return Case(model, None, attention, torch.randn(SAMPLES, 3, 16, 16), torch.randint(5, (SAMPLES,)), nn.CrossEntropyLoss(),
                lambda model, images: model(images).logits)


def dit() -> Case:
    """The inputs of a sample in one row: noisy picture, time, class."""
    time, label = torch.randint(1000, (SAMPLES, 1)), torch.randint(10, (SAMPLES, 1))
    rows = torch.cat([torch.randn(SAMPLES, 256), time.float(), label.float()], 1)
    return Case(DiffusionTransformer(4, 8, 2), None, ["to_q", "to_v"], rows, torch.randn(SAMPLES, 4, 8, 8), nn.MSELoss(),
                lambda model, row: model(row[:, :256].unflatten(1, (4, 8, 8)), row[:, 256], row[:, 257].long()))


CASES = {"llama": llama, "qwen3": qwen3, "gemma3": gemma3, "bert": bert, "vit": vit, "dit": dit}
