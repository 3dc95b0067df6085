#!/usr/bin/env python3
"""Models as their authors wrote them, at small sizes and with random weights: how `motley.split` divides them by their trace.

    pip install torch torchvision transformers timm peft diffusers
    PYTHONPATH=python python3 examples/split_models.py [--quick] [--more] [NAME…]

Prints for each model its layers, the number of its blocks, and the largest difference of the loss and of any gradient from
eager PyTorch in a package that is run at a batch size which was not traced; or why it is refused. The layers are compared with
the model as it is, and the package without dropout, for its masks are Motley's own. Ends with 1 where a difference is more than 1e-5, or a
model has fewer layers than blocks, or one is refused that should not be, or the other way round. With --quick no packages are made;
--more adds models on which nothing was fitted.
"""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import time
import traceback
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn as nn
import torch.nn.functional as F

import motley
from motley.interpret import Package
from motley.layers import Layers, Names
from motley.modules import ModuleStack, preserved_state
from motley.comparison import Comparison

LARGEST_DIFFERENCE = 1e-5
_FLOOR = 1e-2  # of the largest gradient: smaller ones, such as that of a bias before BatchNorm, may be rounding alone
VOCABULARY, CLASSES, LENGTH = 96, 10, 12

Batch = Callable[[int], torch.Tensor]


class Entry(NamedTuple):
    make: Callable[[], nn.Module]
    batch: Batch
    blocks: int
    forward: Optional[Callable[[nn.Module], Callable[[torch.Tensor], Any]]] = None
    loss: str = "tokens"
    refused: str = ""
    """A part of the reason, where it has to be refused."""
    draws: bool = False
    """Whether it draws random numbers, which are Motley's own in a package: then the difference is that of its layers."""


def ids(length: int = LENGTH, low: int = 3) -> Batch:
    return lambda n: torch.randint(low, VOCABULARY, (n, length))


def images(size: int, channels: int = 3) -> Batch:
    return lambda n: torch.randn(n, channels, size, size)


def with_mask(n: int) -> torch.Tensor:
    """Ids and their mask, of which the end of each row is padding."""
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


def two_texts(model: nn.Module) -> Callable[[torch.Tensor], Any]:
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
    """nn.Transformer with two texts in one tensor."""

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


_GROUPED: Dict[str, Any] = {"num_key_value_heads": 2}
_MOE: Dict[str, Any] = {**_GROUPED, "experts_implementation": "batched_mm"}
_GEMMA: Dict[str, Any] = {**_GROUPED, "head_dim": 8}
_T5: Dict[str, Any] = dict(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=4, decoder_start_token_id=0, hidden_size=None,
                           intermediate_size=None, num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None)
_BART: Dict[str, Any] = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64, encoder_attention_heads=4,
                             decoder_attention_heads=4, hidden_size=None, intermediate_size=None, num_hidden_layers=None, num_attention_heads=None,
                             decoder_start_token_id=2, forced_eos_token_id=2)
_IMAGE: Dict[str, Any] = dict(image_size=32, patch_size=8, vocab_size=None, max_position_embeddings=None, pad_token_id=None, bos_token_id=None,
                              eos_token_id=None)
_TWO = lambda n: torch.randint(3, VOCABULARY, (n, 2 * LENGTH))  # noqa: E731


def _unet(**options: Any) -> Callable[[], nn.Module]:
    return diffusion("UNet2DModel", sample_size=16, in_channels=3, out_channels=3, layers_per_block=2, block_out_channels=(16, 32), norm_num_groups=4,
                     down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, **options)


ZOO: Dict[str, Entry] = {
    "Llama": Entry(language("LlamaForCausalLM", "LlamaConfig", **_GROUPED), ids(), 3),
    "Llama, eager attention": Entry(language("LlamaForCausalLM", "LlamaConfig", attn_implementation="eager", **_GROUPED), ids(), 3),
    "Llama, ids and mask": Entry(language("LlamaForCausalLM", "LlamaConfig", **_GROUPED), with_mask, 3, masked),
    "Llama, LoRA": Entry(lora, ids(), 3),
    "Qwen2": Entry(language("Qwen2ForCausalLM", "Qwen2Config", **_GROUPED), ids(), 3),
    "Qwen3": Entry(language("Qwen3ForCausalLM", "Qwen3Config", head_dim=8, **_GROUPED), ids(), 3),
    "Mistral": Entry(language("MistralForCausalLM", "MistralConfig", **_GROUPED), ids(), 3),
    "Mistral, short window": Entry(language("MistralForCausalLM", "MistralConfig", sliding_window=5, **_GROUPED), ids(), 3),
    "Gemma2": Entry(language("Gemma2ForCausalLM", "Gemma2Config", sliding_window=5, **_GEMMA), ids(), 3),
    "Gemma3": Entry(language("Gemma3ForCausalLM", "Gemma3TextConfig", sliding_window=5, **_GEMMA), ids(), 3),
    "Granite": Entry(language("GraniteForCausalLM", "GraniteConfig", residual_multiplier=0.5, logits_scaling=2.0, **_GROUPED), ids(), 3),
    "Phi-3": Entry(language("Phi3ForCausalLM", "Phi3Config", resid_pdrop=0.1, **_GROUPED), ids(), 3),
    "StableLM": Entry(language("StableLmForCausalLM", "StableLmConfig", hidden_dropout=0.1, **_GROUPED), ids(), 3),
    "GPT-NeoX": Entry(language("GPTNeoXForCausalLM", "GPTNeoXConfig"), ids(), 3),
    "OPT": Entry(language("OPTForCausalLM", "OPTConfig", ffn_dim=64, word_embed_proj_dim=32), ids(), 3),
    "GPT-2": Entry(language("GPT2LMHeadModel", "GPT2Config", n_positions=64, n_embd=32, n_layer=3, n_head=4, hidden_size=None, intermediate_size=None,
                            num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None), ids(), 3),
    "Mamba": Entry(language("MambaForCausalLM", "MambaConfig", state_size=4, num_attention_heads=None, intermediate_size=None,
                            max_position_embeddings=None), ids(), 3),
    "Mixtral": Entry(language("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, **_GROUPED), ids(), 3, refused="batched_mm"),
    "Mixtral, batched_mm": Entry(language("MixtralForCausalLM", "MixtralConfig", num_local_experts=4, **_MOE), ids(), 3),
    "Qwen2-MoE, batched_mm": Entry(language("Qwen2MoeForCausalLM", "Qwen2MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                                            shared_expert_intermediate_size=32, **_MOE), ids(), 3),
    "BERT, masked words": Entry(language("BertForMaskedLM", "BertConfig"), ids(), 3),
    "BERT, classes, ids and mask": Entry(language("BertForSequenceClassification", "BertConfig"), with_mask, 3, masked, "classes"),
    "RoBERTa, masked words": Entry(language("RobertaForMaskedLM", "RobertaConfig", pad_token_id=1, bos_token_id=0), ids(), 3),
    "RoBERTa, classes": Entry(language("RobertaForSequenceClassification", "RobertaConfig", pad_token_id=1, bos_token_id=0), ids(), 3, loss="classes"),
    "T5": Entry(language("T5ForConditionalGeneration", "T5Config", **_T5), _TWO, 4, two_texts, "second"),
    "Whisper": Entry(lambda: of("transformers", "WhisperForConditionalGeneration")(of("transformers", "WhisperConfig")(
        vocab_size=VOCABULARY, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20, max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        decoder_start_token_id=1)), audio_and_ids, 4, whisper, "any"),
    "ViT (transformers)": Entry(language("ViTForImageClassification", "ViTConfig", **_IMAGE), images(32), 3, loss="classes"),
    "CLIP, text": Entry(clip_text, ids(), 3, loss="any"),
    "CLIP, images": Entry(clip_image, images(32), 3, loss="any"),
    "ResNet-18": Entry(vision("resnet18"), images(64), 8, loss="classes"),
    "MobileNetV3": Entry(vision("mobilenet_v3_small"), images(64), 11, loss="classes"),
    "EfficientNet-B0": Entry(vision("efficientnet_b0"), images(64), 16, loss="classes"),
    "ConvNeXt (torchvision)": Entry(vision("convnext_tiny"), images(64), 18, loss="classes"),
    "Swin (torchvision)": Entry(vision("swin_t"), images(64), 12, loss="classes"),
    "DenseNet-121": Entry(vision("densenet121"), images(64), 58, loss="classes"),
    "FCN-ResNet50": Entry(segmentation("fcn_resnet50"), images(64), 16, loss="any"),
    "DeepLabV3-ResNet50": Entry(segmentation("deeplabv3_resnet50"), images(64), 16, loss="any"),
    "Faster R-CNN": Entry(lambda: importlib.import_module("torchvision.models.detection").fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None), images(64), 16, loss="any", refused="targets should not be none"),
    "ConvNeXt (timm)": Entry(timm("convnext_atto"), images(64), 12, loss="classes"),
    "ViT (timm)": Entry(timm("vit_tiny_patch16_224", img_size=32, depth=3, embed_dim=48), images(32), 3, loss="classes"),
    "ResNet26d (timm)": Entry(timm("resnet26d"), images(64), 8, loss="classes"),
    "UNet2DModel": Entry(_unet(), picture_and_time, 4, unet, "any"),
    "UNet2DConditionModel": Entry(diffusion("UNet2DConditionModel", sample_size=16, in_channels=3, out_channels=3, layers_per_block=1,
                                            block_out_channels=(16, 32), norm_num_groups=4, cross_attention_dim=32, attention_head_dim=8,
                                            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D")),
                                  picture_and_time, 4, conditioned, "any"),
    "DiT": Entry(diffusion("DiTTransformer2DModel", sample_size=16, in_channels=3, out_channels=3, num_layers=3, num_attention_heads=4,
                           attention_head_dim=8, patch_size=4, num_embeds_ada_norm=CLASSES), picture_and_time, 3, dit, "any"),
    "nn.Transformer": Entry(Seq, _TWO, 4, loss="second"),
    "nn.LSTM": Entry(lambda: Recurrent("LSTM"), ids(), 1),
    "nn.GRU": Entry(lambda: Recurrent("GRU"), ids(), 1),
    "nn.RNN": Entry(lambda: Recurrent("RNN"), ids(), 1),
}

MORE: Dict[str, Entry] = {
    "ALBERT": Entry(language("AlbertForMaskedLM", "AlbertConfig", embedding_size=16), ids(), 1),
    "BART": Entry(language("BartForConditionalGeneration", "BartConfig", **_BART), _TWO, 4, two_texts, "second"),
    "BEiT": Entry(language("BeitForImageClassification", "BeitConfig", **_IMAGE), images(32), 3, loss="classes"),
    "BLOOM": Entry(language("BloomForCausalLM", "BloomConfig", n_layer=3, n_head=4, num_hidden_layers=None, num_attention_heads=None,
                            intermediate_size=None, max_position_embeddings=None), ids(), 3),
    "Cohere": Entry(language("CohereForCausalLM", "CohereConfig", **_GROUPED), ids(), 3),
    "DeBERTa-v2": Entry(language("DebertaV2ForMaskedLM", "DebertaV2Config"), ids(), 3),
    "DeiT": Entry(language("DeiTForImageClassification", "DeiTConfig", **_IMAGE), images(32), 3, loss="classes"),
    "DINOv2": Entry(language("Dinov2ForImageClassification", "Dinov2Config", drop_path_rate=0.1, **_IMAGE), images(32), 3, loss="classes"),
    "DistilBERT": Entry(language("DistilBertForMaskedLM", "DistilBertConfig", dim=32, hidden_dim=64, n_layers=3, n_heads=4, hidden_size=None,
                                 num_hidden_layers=None, num_attention_heads=None, intermediate_size=None), ids(), 3),
    "ELECTRA": Entry(language("ElectraForMaskedLM", "ElectraConfig", embedding_size=16), ids(), 3),
    "Falcon": Entry(language("FalconForCausalLM", "FalconConfig", intermediate_size=None), ids(), 3),
    "GPT-J": Entry(language("GPTJForCausalLM", "GPTJConfig", n_positions=64, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, hidden_size=None,
                            intermediate_size=None, num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None), ids(), 3),
    "MPT": Entry(language("MptForCausalLM", "MptConfig", d_model=32, n_heads=4, n_layers=3, max_seq_len=64, hidden_size=None, intermediate_size=None,
                          num_hidden_layers=None, num_attention_heads=None, max_position_embeddings=None), ids(), 3),
    "OLMo2": Entry(language("Olmo2ForCausalLM", "Olmo2Config", **_GROUPED), ids(), 3),
    "Phi": Entry(language("PhiForCausalLM", "PhiConfig"), ids(), 3),
    "RWKV": Entry(language("RwkvForCausalLM", "RwkvConfig", attention_hidden_size=32, num_attention_heads=None, max_position_embeddings=None), ids(), 3,
                  refused="writes to"),
    "SegFormer": Entry(language("SegformerForImageClassification", "SegformerConfig", hidden_sizes=[8, 16], depths=[2, 2], num_encoder_blocks=2,
                                sr_ratios=[2, 1], num_attention_heads=[1, 2], patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2], hidden_size=None,
                                intermediate_size=None, num_hidden_layers=None, **{k: v for k, v in _IMAGE.items() if "size" not in k}), images(32), 4,
                       loss="classes"),
    "AlexNet": Entry(vision("alexnet"), images(64), 5, loss="classes"),
    "VGG-11": Entry(vision("vgg11_bn"), images(32), 8, loss="classes"),
    "SqueezeNet": Entry(vision("squeezenet1_1"), images(64), 8, loss="classes"),
    "ShuffleNet": Entry(vision("shufflenet_v2_x0_5"), images(64), 16, loss="classes"),
    "RegNet": Entry(vision("regnet_y_400mf"), images(64), 16, loss="classes"),
    "GoogLeNet": Entry(vision("googlenet", init_weights=False, aux_logits=False), images(64), 9, loss="classes"),
    "MobileNetV2": Entry(vision("mobilenet_v2"), images(64), 17, loss="classes"),
    "Swin (timm)": Entry(timm("swin_tiny_patch4_window7_224", img_size=64, window_size=2, depths=(1, 2), num_heads=(2, 2), embed_dim=16), images(64), 3,
                         loss="classes"),
    "Mixer (timm)": Entry(timm("mixer_s32_224", img_size=64), images(64), 8, loss="classes"),
    "CoAtNet (timm)": Entry(timm("coatnet_pico_rw_224", img_size=64), images(64), 4, loss="classes"),
}
"""Others, on which nothing was fitted."""


def loss_of(kind: str) -> Callable[[torch.Tensor, torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]:
    def total(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        if kind == "any":
            return (output * torch.sin(output)).sum(), torch.full((), output.size(0), dtype=torch.int64)
        if kind == "classes":
            return F.cross_entropy(output, target, reduction="sum"), torch.full((), output.size(0), dtype=torch.int64)
        return F.cross_entropy(output.flatten(0, 1), target.flatten(), reduction="sum"), torch.full((), target.numel(), dtype=torch.int64)
    return total


def target_of(kind: str, count: int) -> torch.Tensor:
    if kind == "any":
        return torch.zeros(count)
    return torch.randint(2 if kind == "classes" else VOCABULARY, (count,) if kind == "classes" else (count, LENGTH))


def compare(layers: Layers, input: torch.Tensor) -> None:
    """Raises where the layers are not the model, with dropout; `export` does the same first."""
    names = Names(layers)
    with preserved_state([root for _, root in layers.roots]), ModuleStack(names.modules) as modules:
        Comparison(layers, names, modules).run(input, VOCABULARY)


def without_dropout(model: nn.Module, change: bool = True) -> bool:
    """Whether there was any."""
    found = False
    names = ("dropout", "attention_dropout", "activation_dropout", "attn_dropout", "hidden_dropout", "dropout_p", "dropout_prob", "drop_prob", "p",
             "attention_dropout_prob", "drop", "resid_pdrop", "stochastic_depth_prob", "classifier_dropout", "dropout_rate")
    for module in model.modules():
        for name in names:
            if isinstance(getattr(module, name, None), float) and getattr(module, name) > 0:
                found = True
                if change:
                    setattr(module, name, 0.0)
    return found


class Result(NamedTuple):
    layers: int
    worst: float
    where: str
    traced: bool


def measured(entry: Entry, folder: str) -> Result:
    torch.manual_seed(1)
    model = entry.make().train()
    forward = entry.forward(model) if entry.forward else None
    loss = loss_of(entry.loss)
    limits = {"input_limit": VOCABULARY, "target_limit": 2 if entry.loss == "classes" else VOCABULARY}
    example = entry.batch(2), target_of(entry.loss, 2)
    layers = motley.split(model, example, forward=forward)
    quick = "--quick" in sys.argv
    if quick or without_dropout(model, change=False):
        compare(layers, example[0])
        if quick:
            return Result(len(layers.layers), 0.0, "not measured", layers.traced)
        without_dropout(model)
        layers = motley.split(model, example, forward=forward)
    done = motley.export(layers, loss, example, os.path.join(folder, "model.motley"), **limits)
    if entry.draws:
        return Result(done.layers, done.largest_difference, "a layer", layers.traced)
    package = Package.open(done.path)
    input, target = entry.batch(4), target_of(entry.loss, 4)
    torch.manual_seed(1)
    output = (forward or model)(input)
    output = getattr(output, "logits", output)
    output = output if isinstance(output, torch.Tensor) else next(iter(output.values())) if hasattr(output, "values") else output[0]
    right = loss(output, target)[0]
    right.backward()
    step = package.train(input, target)
    worst, where = _relative(step.loss, right.detach(), 0.0), "the loss"
    least = _FLOOR * max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    names = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad and parameter.grad is not None}
    missing = [name for name in names if name not in step.gradients]
    if missing:
        return Result(done.layers, float("inf"), f"no gradient of {missing[0]}", layers.traced)
    for name, parameter in names.items():
        difference = _relative(step.gradients[name], parameter.grad, least)
        if not difference <= worst:  # NaN too
            worst, where = difference, name
    return Result(done.layers, worst, where, layers.traced)


def _relative(found: torch.Tensor, right: torch.Tensor, least: float) -> float:
    return float((found - right).abs().max()) / max(float(right.abs().max()), least, 1e-30)


def line_of(entry: Entry) -> Tuple[bool, str]:
    """Whether all is as it should be, and what is printed."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = measured(entry, folder)
        except motley.ExportError as error:
            right = bool(entry.refused) and entry.refused in str(error)
            return right, f"{'refused' if right else 'REFUSED'} {error}"
        except Exception as error:
            if "--traceback" in sys.argv:
                traceback.print_exc()
            return False, f"FAILED {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    right = not entry.refused and found.worst <= LARGEST_DIFFERENCE and found.layers >= entry.blocks
    return right, (f"{'ok ' if right else 'OFF'} {found.layers:3} layers of {entry.blocks:2} blocks{'' if found.traced else ' (not cut)'}, "
                   f"largest difference {found.worst:.1e} ({found.where})")


def main(*names: str) -> int:
    chosen: List[str] = [name for name in names if not name.startswith("--")] or [*ZOO, *(MORE if "--more" in names else ())]
    print(f"torch {torch.__version__}")
    wrong = 0
    for name in chosen:
        began = time.process_time()
        right, text = line_of({**ZOO, **MORE}[name])
        wrong += not right
        print(f"{name:30} {text}, {time.process_time() - began:.1f} s", flush=True)
    print(f"{len(chosen) - wrong} of {len(chosen)} as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(*sys.argv[1:]))
