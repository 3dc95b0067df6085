#!/usr/bin/python3
"""Writes the golden files of tests/models/golden_test.cc.

    /usr/bin/python3 tests/models/make_gpt2_golden.py tests/models/golden

An independent implementation of the model families in PyTorch (Debian's python3-torch) with
autograd. Each file is in the safetensors format: a little-endian u64 header length, a JSON header,
then the tensors. It holds the parameters under their names, "grad.NAME" for each parameter's
gradient of the summed loss, and "tokens", "targets" (I64) and "loss" (F32), with weights of
classes and label smoothing also "weights" and "mean", the mean of CrossEntropyLoss.
A tied parameter has one gradient here: the sum over its uses.
"""
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F

BATCH, CONTEXT, VOCAB, WIDTH, HEADS, LAYERS, WINDOW = 2, 12, 37, 16, 2, 2, 8


def write_safetensors(path, tensors):
    header, blobs, offset = {}, [], 0
    for name, tensor in tensors.items():
        blob = tensor.detach().contiguous().numpy().tobytes()
        dtype = {torch.float32: "F32", torch.int64: "I64"}[tensor.dtype]
        header[name] = {"dtype": dtype, "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


class Weights(dict):
    """Random parameters. Norms and biases differ from 1 and 0 so that the test covers them."""

    def __init__(self, seed):
        super().__init__()
        self.random = torch.Generator().manual_seed(seed)

    def draw(self, name, *shape, scale=0.15, shift=0.0):
        value = torch.randn(*shape, generator=self.random) * scale + shift
        self[name] = value.requires_grad_()

    def norm(self, name, width):
        self.draw(name + ".weight", width, shift=1.0)
        self.draw(name + ".bias", width)

    def linear(self, name, inputs, outputs):
        self.draw(name + ".weight", inputs, outputs)
        self.draw(name + ".bias", outputs)


def norm(p, name, x):
    return F.layer_norm(x, (x.shape[-1],), p[name + ".weight"], p[name + ".bias"], 1e-5)


def linear(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def gpt2_weights(tied):
    p = Weights(7 if tied else 8)
    p.draw("wte.weight", VOCAB, WIDTH)
    p.draw("wpe.weight", CONTEXT, WIDTH)
    for n in range(LAYERS):
        p.norm(f"h.{n}.ln_1", WIDTH)
        p.linear(f"h.{n}.attn.c_attn", WIDTH, 3 * WIDTH)
        p.linear(f"h.{n}.attn.c_proj", WIDTH, WIDTH)
        p.norm(f"h.{n}.ln_2", WIDTH)
        p.linear(f"h.{n}.mlp.c_fc", WIDTH, 4 * WIDTH)
        p.linear(f"h.{n}.mlp.c_proj", 4 * WIDTH, WIDTH)
    p.norm("ln_f", WIDTH)
    if not tied:
        p.draw("lm_head.weight", VOCAB, WIDTH)
    return p


def attention(p, name, x):
    batch, time, width = x.shape
    query, key, value = (
        part.view(batch, time, HEADS, width // HEADS).permute(0, 2, 1, 3)
        for part in linear(p, name + ".c_attn", x).split(width, dim=-1))
    scores = torch.einsum("bhid,bhjd->bhij", query, key) / math.sqrt(width // HEADS)
    future = torch.ones(time, time).triu(1).bool()
    mixed = torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ value
    return linear(p, name + ".c_proj", mixed.permute(0, 2, 1, 3).reshape(batch, time, width))


def gpt2_scores(p, tokens):
    x = p["wte.weight"][tokens] + p["wpe.weight"][: tokens.shape[1]]
    for n in range(LAYERS):
        x = x + attention(p, f"h.{n}.attn", norm(p, f"h.{n}.ln_1", x))
        inner = gelu(linear(p, f"h.{n}.mlp.c_fc", norm(p, f"h.{n}.ln_2", x)))
        x = x + linear(p, f"h.{n}.mlp.c_proj", inner)
    return norm(p, "ln_f", x) @ p.get("lm_head.weight", p["wte.weight"]).T


def mlp_weights():
    p = Weights(9)
    p.draw("input.embedding.weight", VOCAB, WIDTH // WINDOW)
    p.linear("input.linear", WIDTH, WIDTH)
    for n in range(LAYERS):
        p.norm(f"hidden.{n}.norm", WIDTH)
        p.linear(f"hidden.{n}.linear", WIDTH, WIDTH)
    p.norm("head.norm", WIDTH)
    p.draw("head.weight", VOCAB, WIDTH)
    return p


def mlp_scores(p, tokens):
    embedded = F.pad(p["input.embedding.weight"][tokens], (0, 0, WINDOW - 1, 0))
    time = tokens.shape[1]
    x = torch.cat([embedded[:, k:k + time] for k in range(WINDOW)], dim=-1)
    x = gelu(linear(p, "input.linear", x))
    for n in range(LAYERS):
        x = x + gelu(linear(p, f"hidden.{n}.linear", norm(p, f"hidden.{n}.norm", x)))
    return norm(p, "head.norm", x) @ p["head.weight"].T


def make(path, weights, scores, class_weights=None, label_smoothing=0.0):
    random = torch.Generator().manual_seed(3)
    tokens = torch.randint(VOCAB, (BATCH, CONTEXT), generator=random)
    targets = torch.randint(VOCAB, (BATCH, CONTEXT), generator=random)
    # Reference gradients in double, so that their own rounding is negligible.
    exact = {name: value.detach().double().requires_grad_() for name, value in weights.items()}
    logits = scores(exact, tokens)
    options = {"label_smoothing": label_smoothing}
    if class_weights is not None:
        options["weight"] = class_weights.double()
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum", **options)
    loss.backward()
    tensors = dict(weights)
    tensors |= {"grad." + name: value.grad.float() for name, value in exact.items()}
    tensors |= {"tokens": tokens, "targets": targets, "loss": loss.float().view(1)}
    if class_weights is not None:
        mean = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), **options)
        tensors |= {"weights": class_weights, "mean": mean.float().view(1)}
    write_safetensors(path, tensors)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    make(folder / "gpt2-tied.safetensors", gpt2_weights(True), gpt2_scores)
    make(folder / "gpt2-untied.safetensors", gpt2_weights(False), gpt2_scores)
    make(folder / "mlp.safetensors", mlp_weights(), mlp_scores)
    # Some classes have no weight.
    unequal = torch.arange(VOCAB).remainder(7).float() * 0.3
    make(folder / "gpt2-weighted.safetensors", gpt2_weights(False), gpt2_scores, unequal)
    make(folder / "mlp-smoothed.safetensors", mlp_weights(), mlp_scores, torch.ones(VOCAB), 0.1)
    make(folder / "mlp-weighted-smoothed.safetensors", mlp_weights(), mlp_scores, unequal, 0.2)
