"""A tokenizer with the interface of transformers' that needs no library, and a small decoder that takes packed rows."""

from __future__ import annotations

import json
import random
import re
from typing import Any, Dict, List, Optional

import torch
import torch.nn as nn

from named_models import Block
from support import motley

QUIET: Any = {"follow": lambda line: None}

PAD, EOS, BOS, USER, ASSISTANT, SYSTEM, NEWLINE, FIRST_BYTE = range(8)
VOCABULARY = FIRST_BYTE + 256

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM, "tool": USER}


class Tokenizer:
    """A token is a byte. With `marks` the template has {% generation %}. A `forgetful` template leaves out answers but for the last one, one
    that is `dated` begins with the day, and `parts_only` drops contents that are texts. It writes its variable `mood`."""

    is_fast = True
    name_or_path = "bytes"
    bos_token, eos_token, pad_token = "<s>", "</s>", "<pad>"
    bos_token_id, eos_token_id, pad_token_id = BOS, EOS, PAD

    def __init__(self, marks: bool = True, forgetful: bool = False, template: bool = True, dated: bool = False, parts_only: bool = False):
        described = ("{% generation %}" if marks else "") + f"forgetful={forgetful} {parts_only=}" + (" day=strftime_now('%Y-%m-%d')" if dated else "")
        self.chat_template: Optional[str] = described if template else None
        self.forgetful, self.dated, self.parts_only = forgetful, dated, parts_only
        self.calls = 0
        self.fails_at: Optional[int] = None

    def get_vocab(self) -> Dict[str, int]:
        return {str(k): k for k in range(VOCABULARY)}

    def __call__(self, text: str) -> Dict[str, List[int]]:
        self._count()
        parts = text.split(self.eos_token)
        ids = [[FIRST_BYTE + byte for byte in part.encode()] for part in parts]
        return {"input_ids": [token for k, part in enumerate(ids) for token in ([EOS] if k else []) + part]}

    def apply_chat_template(self, messages: Any, tokenize: bool, return_dict: bool = True, add_generation_prompt: bool = False,
                            return_assistant_tokens_mask: bool = False, tools: Any = None, chat_template: Optional[str] = None, mood: str = "") -> Any:
        assert return_dict
        if tokenize:
            self._count()
        day = re.search('day="(.*)"', chat_template or self.chat_template or "")
        assert (day is not None) == self.dated, "nothing else writes the day"
        head = (day[1] if day is not None else "") + mood
        ids = [BOS] + [FIRST_BYTE + byte for byte in head.encode()]
        mask = [0] * len(ids)
        for k, message in enumerate(messages):
            answer = message["role"] == "assistant"
            if message["role"] not in _ROLES:
                raise ValueError(f"the template does not know the role {message['role']}")
            content = [FIRST_BYTE + byte for byte in self._written(message).encode()] + ([EOS] if answer else [])
            if answer and self.forgetful and k + 1 < len(messages):
                content = []
            ids += [_ROLES[message["role"]], *content, NEWLINE]
            mask += [0, *([int(answer)] * len(content)), 0]
        ids += [ASSISTANT] if add_generation_prompt else []
        mask += [0] if add_generation_prompt else []
        if not tokenize:
            return self.decode(ids)
        return {"input_ids": ids, **({"assistant_masks": mask} if return_assistant_tokens_mask else {})}

    def _written(self, message: Dict[str, Any]) -> str:
        if message.get("tool_calls"):
            return "".join(json.dumps(call["function"]["arguments"]) for call in message["tool_calls"])
        content = message["content"]
        if self.parts_only:
            return "" if isinstance(content, str) else "".join(part["text"] for part in content)
        return str(content)  # a list of parts as jinja writes it

    def decode(self, ids: List[int]) -> str:
        return b"".join(bytes([token - FIRST_BYTE]) if token >= FIRST_BYTE else b"<%d>" % token for token in ids).decode("utf-8", "replace")

    def _count(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise KeyboardInterrupt


def chats(count: int, seed: int = 1, longest: int = 3) -> List[Dict[str, Any]]:
    chance = random.Random(seed)

    def content() -> str:
        return "".join(chance.choices("abcdefgh ö", k=chance.randint(1, 8)))

    made = []
    for _ in range(count):
        turns = chance.randint(1, longest)
        made.append({"messages": [{"role": role, "content": content()} for _ in range(turns) for role in ("user", "assistant")]})
    return made


class Decoder(nn.Module):
    """Called as a causal model of transformers."""

    def __init__(self, length: int = 64, width: int = 16, blocks: int = 2):
        super().__init__()
        self.ids, self.positions = nn.Embedding(VOCABULARY, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 2, 0.0) for _ in range(blocks))
        self.head = nn.Linear(width, VOCABULARY)
        for embedding in (self.ids, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, position_ids: Optional[torch.Tensor] = None) -> Any:
        length = input_ids.size(1)
        places = torch.arange(length)[None] if position_ids is None else position_ids
        bias = attention_mask
        if attention_mask.dim() == 2:
            allowed = torch.ones(length, length, dtype=torch.bool).tril() & (attention_mask[:, None, None] != 0)
            bias = torch.zeros(allowed.shape).masked_fill(~allowed, -1e9)
        x = self.ids(input_ids) + self.positions(places)
        for block in self.blocks:
            x = block(x, bias)
        return {"logits": self.head(x)}


class Recurrent(nn.Module):
    """Its state passes through a row, whatever mask is given."""

    def __init__(self) -> None:
        super().__init__()
        self.ids, self.cell, self.head = nn.Embedding(VOCABULARY, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, VOCABULARY)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.cell(self.ids(input_ids))[0]) + attention_mask.sum() * 0 + position_ids.sum() * 0


def write_lines(records: List[Any], path: str) -> str:
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def rows_of(data: motley.Texts) -> List[Dict[str, List[int]]]:
    """Without the padding."""
    made = []
    for k in range(len(data)):
        row = data[k]
        real = row["document_ids" if data.packing else "attention_mask"] > 0
        made.append({name: array[real].tolist() for name, array in row.items()})
    return made
