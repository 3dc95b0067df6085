"""Synthetic dialogues, a tokenizer trained on them, and a small Llama in a folder; nothing is downloaded."""

from __future__ import annotations

import json
import random
from typing import Any, Dict, List

TEMPLATE = ("{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>' }}"
            "{% if message['role'] == 'assistant' %}BEGIN{{ message['content'] + eos_token }}END{% else %}{{ message['content'] }}{% endif %}{{ '\n' }}"
            "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}")
MARKED = TEMPLATE.replace("BEGIN", "{% generation %}").replace("END", "{% endgeneration %}")
PLAIN = TEMPLATE.replace("BEGIN", "").replace("END", "")

_SYLLABLES = ["ka", "lo", "mi", "ner", "su", "ta", "ve", "ri", "do", "pel", "ön", "ça", "の", "🙂"]


def sentence(chance: random.Random, words: int) -> str:
    return " ".join("".join(chance.choices(_SYLLABLES, k=chance.randint(1, 4))) for _ in range(words)) + chance.choice(".?!")


def dialogues(count: int, seed: int = 1) -> List[Dict[str, Any]]:
    chance = random.Random(seed)
    made = []
    for _ in range(count):
        messages = [{"role": "system", "content": sentence(chance, 4)}] if chance.random() < 0.3 else []
        for _ in range(chance.randint(1, 4)):
            messages.append({"role": "user", "content": sentence(chance, chance.randint(1, 12))})
            messages.append({"role": "assistant", "content": sentence(chance, chance.randint(1, 16))})
        made.append({"messages": messages})
    return made


def write_lines(records: List[Dict[str, Any]], path: str) -> str:
    with open(path, "w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return path


def tokenizer(template: Any = MARKED, words: int = 400) -> Any:
    """A byte-level BPE of transformers."""
    import tokenizers
    import transformers

    special = ["<s>", "</s>", "<pad>", "<|system|>", "<|user|>", "<|assistant|>"]
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=words, special_tokens=special, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
                                             show_progress=False)
    made.train_from_iterator((message["content"] for record in dialogues(200) for message in record["messages"]), trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>", chat_template=template)


def write_model(folder: str) -> None:
    """A Llama with random weights, with its tokenizer, as a folder of transformers."""
    import torch
    import transformers

    torch.manual_seed(1)
    words = tokenizer()
    config = transformers.LlamaConfig(vocab_size=len(words), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=256, pad_token_id=words.pad_token_id,
                                      bos_token_id=words.bos_token_id, eos_token_id=words.eos_token_id)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)
    words.save_pretrained(folder)
