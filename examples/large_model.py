#!/usr/bin/env python3
"""A Llama with random bf16 weights in sharded safetensors, exported from its folder: seconds, peak memory and bytes.

    pip install torch transformers
    PYTHONPATH=python python3 examples/large_model.py tiny|0.3b|1.1b|3b|8b FOLDER [--vocabulary N] [--tokens 2048] [--memory GIB] [--zeros]

Writes FOLDER/weights and FOLDER/llama.motley. With --zeros the weights are zeros in sparse files; time and memory are the same.
`tiny` is also exported from memory, and both packages are compared: the exit status is 1 if they differ in more than the type of weights.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import resource
import sys
import time
import warnings
from typing import Dict, List, NamedTuple, Tuple

import torch

import motley
from motley import weights
from motley.interpret import Package


class Size(NamedTuple):
    width: int
    inner: int
    blocks: int
    heads: int
    key_heads: int
    vocabulary: int
    is_tied: bool


SIZES = {"tiny": Size(64, 160, 3, 4, 2, 128, False), "0.3b": Size(1024, 2816, 16, 16, 4, 32000, False),
         "1.1b": Size(2048, 5632, 22, 32, 4, 32000, False), "3b": Size(3072, 8192, 28, 24, 8, 128256, True),
         "8b": Size(4096, 14336, 32, 32, 8, 128256, False)}
SHARD_BYTES = 1 << 29


def shapes(size: Size) -> Dict[str, Tuple[int, ...]]:
    keys = size.width // size.heads * size.key_heads
    found: Dict[str, Tuple[int, ...]] = {"model.embed_tokens.weight": (size.vocabulary, size.width)}
    for k in range(size.blocks):
        block = {"input_layernorm": (size.width,), "self_attn.q_proj": (size.width, size.width), "self_attn.k_proj": (keys, size.width),
                 "self_attn.v_proj": (keys, size.width), "self_attn.o_proj": (size.width, size.width), "post_attention_layernorm": (size.width,),
                 "mlp.gate_proj": (size.inner, size.width), "mlp.up_proj": (size.inner, size.width), "mlp.down_proj": (size.width, size.inner)}
        found.update({f"model.layers.{k}.{name}.weight": shape for name, shape in block.items()})
    found["model.norm.weight"] = (size.width,)
    return found if size.is_tied else {**found, "lm_head.weight": (size.vocabulary, size.width)}


def write_folder(size: Size, folder: pathlib.Path, zeros: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shards: List[Dict[str, Tuple[int, ...]]] = [{}]
    for name, shape in shapes(size).items():
        if shards[-1] and 2 * sum(map(math.prod, shards[-1].values())) + 2 * math.prod(shape) > SHARD_BYTES:
            shards.append({})
        shards[-1][name] = shape
    files = {}
    generator = torch.Generator().manual_seed(0)
    for k, shard in enumerate(shards):
        file = f"model-{k + 1:05}-of-{len(shards):05}.safetensors"
        files.update(dict.fromkeys(shard, file))
        if zeros:
            weights.write_zeros(str(folder / file), {name: torch.empty(shape, dtype=torch.bfloat16, device="meta") for name, shape in shard.items()})
        else:
            weights.write(str(folder / file), {name: torch.empty(shape, dtype=torch.bfloat16).normal_(1 if "norm" in name else 0, 0.02, generator=generator)
                                               for name, shape in shard.items()})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": size.width, "intermediate_size": size.inner,
        "num_hidden_layers": size.blocks, "num_attention_heads": size.heads, "num_key_value_heads": size.key_heads, "vocab_size": size.vocabulary,
        "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "tie_word_embeddings": size.is_tied, "hidden_act": "silu", "torch_dtype": "bfloat16",
        "bos_token_id": 1, "eos_token_id": 2}))


def bytes_in(folder: pathlib.Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def is_the_same_from_memory(folder: pathlib.Path, tokens: int, package: pathlib.Path) -> bool:
    import transformers
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.randint(model.config.vocab_size, (2, tokens), generator=torch.Generator().manual_seed(6))
    other = package.with_name("memory.motley")
    motley.export(model, torch.nn.CrossEntropyLoss(), (ids, ids), other, name=package.stem)
    opened, others = Package.open(package), Package.open(other)
    differ = [name for name, tensor in opened.tensors.items() if not torch.equal(tensor, others.tensors[name])]
    differ += [key for key, value in opened.description.items() if key != "weights" and value != others.description[key]]
    texts = [(folder / "reference.jsonl").read_text().splitlines()[1] for folder in (package, other)]
    differ += ["references"] if texts[0] != texts[1] else []
    print(f"from memory: {', '.join(differ) + ' differ' if differ else 'the same description, values and references'}")
    return not differ


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--vocabulary", type=int)
    parser.add_argument("--tokens", type=int)
    parser.add_argument("--memory", type=float)
    parser.add_argument("--zeros", action="store_true")
    given = parser.parse_args()
    source, package = given.folder / "weights", given.folder / "llama.motley"
    tokens = given.tokens or (32 if given.size == "tiny" else 2048)
    if not source.exists():
        size = SIZES[given.size]
        write_folder(size._replace(vocabulary=given.vocabulary or size.vocabulary), source, given.zeros)
    begin = time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", motley.ExportWarning)
        done = motley.export(folder=source, tokens=tokens, path=package, memory=given.memory)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"{done.layers} layers, {time.monotonic() - begin:.1f} s, peak {peak:.2f} GiB, weights {bytes_in(source):,} bytes, package "
          f"{bytes_in(package):,} bytes, largest difference {done.largest_difference:.2g}")
    for notice in done.notices:
        print(f"  {notice}")
    return 0 if given.size != "tiny" or is_the_same_from_memory(source, tokens, package) else 1


if __name__ == "__main__":
    sys.exit(main())
