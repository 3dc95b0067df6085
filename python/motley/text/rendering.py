"""Turns records into tokens and marks those that are trained on, with the model's own tokenizer and chat template."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from ..errors import MotleyError
from .messages import BadRecord, Messages
from .records import Record
from .template import Template, guarded, integers

TRAIN_ON = ("assistant", "completion", "all")


class Document(NamedTuple):
    """`ids` of all tokens, and which of them are trained on. `merged`: a token has letters of the prompt and of the completion."""

    ids: List[int]
    trained: List[bool]
    merged: bool = False


class Renderer:
    """`train_on`: "assistant" for all assistant turns, "completion" for the last one or the completion of a pair, "all", or None: the
    answers of records that have them. `options`: variables of the chat template."""

    def __init__(self, tokenizer: Any, train_on: Optional[str], options: Optional[Mapping[str, Any]] = None):
        if train_on is not None and train_on not in TRAIN_ON:
            raise MotleyError(f"train_on is {train_on!r}. Pass one of {', '.join(map(repr, TRAIN_ON))}")
        if not callable(tokenizer):
            raise MotleyError(f"the tokenizer is a {type(tokenizer).__name__}. Pass the model's tokenizer, such as "
                              "transformers.AutoTokenizer.from_pretrained(path)")
        self._tokenizer = tokenizer
        self.train_on = train_on
        self.template = Template(tokenizer, options)
        self._adds_end: Optional[bool] = None

    @property
    def found_by(self) -> Optional[str]:
        """How the tokens of assistant turns are found: the template's `{% generation %}`, or the difference of prefixes."""
        if self.template.text is None or self.train_on == "all":
            return None
        return "generation" if self.template.marks and self.train_on != "completion" else "prefix"

    def pad_id(self, given: Optional[int]) -> int:
        found = given
        for name in ("pad_token_id", "eos_token_id"):
            found = getattr(self._tokenizer, name, None) if found is None else found
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < 1 << 31:
            raise MotleyError(f"the id of the padding is {found!r}" + ("" if given is not None else ", and the tokenizer has no eos_token either")
                              + ". Pass pad_id=, the id of any token; padding is neither attended to nor trained on")
        return found

    def identity(self) -> Dict[str, Any]:
        """Of the tokenizer: what its tokens depend on, as a hash."""
        tokenizer = self._tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is not None and hasattr(backend, "to_str"):
            described = json.loads(backend.to_str())  # its own truncation and padding are replaced by each call, and change with it
            content = json.dumps({**described, "truncation": None, "padding": None})
        elif not hasattr(tokenizer, "get_vocab"):
            raise MotleyError(f"the tokenizer, a {type(tokenizer).__name__}, has neither backend_tokenizer nor get_vocab(), so a changed one would "
                              "not be noticed. Add get_vocab(), which returns {token: id}")
        else:
            content = json.dumps([sorted(tokenizer.get_vocab().items(), key=str), repr(getattr(tokenizer, "init_kwargs", ""))])
        special = {name: str(getattr(tokenizer, name, None)) for name in ("bos_token", "eos_token", "pad_token", "add_bos_token", "add_eos_token")}
        found = hashlib.sha256(content.encode("utf-8", "surrogatepass"))
        found.update(json.dumps(special, sort_keys=True).encode())
        return {"class": type(tokenizer).__name__, "name": str(getattr(tokenizer, "name_or_path", "")), "sha256": found.hexdigest(),
                "template_sha256": self.template.sha256}

    def document(self, record: Record) -> Document:
        """Raises BadRecord, and MotleyError where no record of this kind can be trained on."""
        if record.messages:
            return self._chat(record)
        if record.kind == "text":
            if self.train_on not in (None, "all"):
                raise MotleyError(f"train_on={self.train_on!r} is for records with answers, and these are texts. Pass train_on=\"all\", or chats")
            ids = self._ids(self._ended(record.parts[0]))
            return Document(ids, [True] * len(ids))
        prompt, completion = record.parts
        before, ids = self._ids(prompt), self._ids(prompt + self._ended(completion))
        if self._ends():
            del before[-1:]
        if self.train_on == "all":
            return Document(ids, [True] * len(ids))
        start = _common(before, ids)  # as trl does
        return Document(ids, [k >= start for k in range(len(ids))], start < len(before))

    def _chat(self, record: Record) -> Document:
        if self.template.text is None:
            raise MotleyError("the tokenizer has no chat template, and the records are chats. Use the tokenizer of the model's chat or instruct "
                              "version, or set tokenizer.chat_template")
        if not record.turns:
            raise BadRecord("the completion has no message of the role 'assistant'" if record.prompt is not None
                            else "the conversation has no message of the role 'assistant'")
        record = self.template.readable(record)
        messages = record.messages
        if self.train_on == "all":
            ids, _ = self.template.ids(messages, record)
            return Document(ids, [True] * len(ids))
        before = [] if record.prompt is None else self._prefix(messages, record.prompt, record)
        if record.prompt is not None and self.train_on != "assistant" and not record.untrained:
            ids = self.template.ids(messages, record)[0]
            self._check_prefix(before, ids, record.prompt)
            return Document(ids, [k >= len(before) for k in range(len(ids))])
        turns = record.turns[-1:] if self.train_on == "completion" and record.prompt is None else record.turns
        marked = self._marked(record) if self.template.marks and self.train_on != "completion" else None
        if marked is not None and not record.untrained:
            self._check_prefix(before, marked.ids, record.prompt or 0)
            return Document(marked.ids, [mark and k >= len(before) for k, mark in enumerate(marked.trained)])
        found = self._by_prefixes(messages, [turn for turn in turns if turn not in record.untrained], record)
        return found if marked is None else Document(found.ids, [one and other for one, other in zip(found.trained, marked.trained)])

    def _marked(self, record: Record) -> Document:
        ids, marks = self.template.ids(record.messages, record, return_assistant_tokens_mask=True)
        if marks is None or len(marks) != len(ids):
            raise MotleyError("the tokenizer returns no assistant_masks, although its chat template has {% generation %}. Update transformers")
        return Document(ids, [mark == 1 for mark in marks])

    def _by_prefixes(self, messages: Messages, turns: List[int], record: Record) -> Document:
        """Each turn is what is between the messages before it, with the head of an answer, and the messages up to it."""
        ids, _ = self.template.ids(messages, record)
        trained = [False] * len(ids)
        for turn in turns:
            before = self._prefix(messages, turn, record)
            upto = ids if turn + 1 == len(messages) else self.template.ids(messages[:turn + 1], record)[0]
            self._check_prefix(before, upto, turn)
            self._check_prefix(upto, ids, turn + 1)
            trained[len(before):len(upto)] = [True] * (len(upto) - len(before))
        return Document(ids, trained)

    def _prefix(self, messages: Messages, turn: int, record: Record) -> List[int]:
        if turn == 0:
            raise BadRecord("the first message is the assistant's, so its tokens cannot be told from what the template puts before them. "
                            "Begin with a message of the role 'user' or 'system', or use a template with {% generation %}")
        return self.template.ids(messages[:turn], record, add_generation_prompt=True)[0]

    @staticmethod
    def _check_prefix(before: List[int], ids: List[int], count: int) -> None:
        if ids[:len(before)] != before or len(ids) < len(before):
            raise BadRecord(f"the chat template renders the first {count} messages alone in another way than at the start of the conversation "
                            f"(token {_common(before, ids)} differs), so the tokens of the answers cannot be told apart. Use a template with "
                            "{% generation %} around the answers, split the conversation after each answer into a prompt and a completion, or "
                            'pass train_on="all"')

    def _ids(self, text: str) -> List[int]:
        """Of a text that already begins with bos_token, such as a rendered chat, without a second one."""
        ids = integers(guarded("the tokenizer", lambda: self._tokenizer(text))["input_ids"])
        begin, begin_id = (getattr(self._tokenizer, name, None) for name in ("bos_token", "bos_token_id"))
        return ids[1:] if begin and text.startswith(begin) and not text.startswith(begin * 2) and ids[:2] == [begin_id] * 2 else ids

    def _ended(self, text: str) -> str:
        """With one token that ends a text, as trl does, unless the tokenizer itself adds it."""
        end = getattr(self._tokenizer, "eos_token", None)
        if not end:
            return text
        if self._ends():
            return text[:-len(end)] if text.endswith(end) else text
        return text if text.endswith(end) else text + end

    def _ends(self) -> bool:
        """Whether the tokenizer ends each text with eos_token, as with add_eos_token=True."""
        if self._adds_end is None:
            self._adds_end = self._ids("a")[-1:] == [getattr(self._tokenizer, "eos_token_id", None)]
        return self._adds_end


def _common(one: List[int], other: List[int]) -> int:
    """The length of the common start."""
    return next((k for k, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
