"""Turns records into tokens and marks those that are trained on, with the model's own tokenizer and chat template."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..errors import MotleyError, summary
from .records import BadRecord, Messages, Record

TRAIN_ON = ("assistant", "completion", "all")

_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")


class Document(NamedTuple):
    """`ids` of all tokens, and which of them are trained on. `merged`: a token has letters of the prompt and of the completion."""

    ids: List[int]
    trained: List[bool]
    merged: bool = False


class Renderer:
    """`train_on`: "assistant" for all assistant turns, "completion" for the last one or the completion of a pair, "all", or None: the
    answers of records that have them."""

    def __init__(self, tokenizer: Any, train_on: Optional[str]):
        if train_on is not None and train_on not in TRAIN_ON:
            raise MotleyError(f"train_on is {train_on!r}. Pass one of {', '.join(map(repr, TRAIN_ON))}")
        if not callable(tokenizer):
            raise MotleyError(f"the tokenizer is a {type(tokenizer).__name__}. Pass the model's tokenizer, such as "
                              "transformers.AutoTokenizer.from_pretrained(path)")
        self._tokenizer = tokenizer
        self.train_on = train_on
        self.template = _template(tokenizer)
        self._marks = self.template is not None and all(map(_GENERATION.search, _templates(tokenizer))) and getattr(tokenizer, "is_fast", True)
        self._adds_end: Optional[bool] = None

    @property
    def found_by(self) -> Optional[str]:
        """How the tokens of assistant turns are found: the template's `{% generation %}`, or the difference of prefixes."""
        if self.template is None or self.train_on == "all":
            return None
        return "generation" if self._marks and self.train_on != "completion" else "prefix"

    def pad_id(self, given: Optional[int]) -> int:
        found = given
        for name in ("pad_token_id", "eos_token_id"):
            found = getattr(self._tokenizer, name, None) if found is None else found
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
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
                "template_sha256": None if self.template is None else
                hashlib.sha256("\0".join(_templates(tokenizer)).encode("utf-8", "surrogatepass")).hexdigest()}

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
        if self.template is None:
            raise MotleyError("the tokenizer has no chat template, and the records are chats. Use the tokenizer of the model's chat or instruct "
                              "version, or set tokenizer.chat_template")
        messages = record.messages
        turns = [k for k, message in enumerate(messages) if message["role"] == "assistant" and k >= (record.prompt or 0)]
        if not turns:
            raise BadRecord("the completion has no message of the role 'assistant'" if record.prompt is not None
                            else "the conversation has no message of the role 'assistant'")
        if self.train_on == "all":
            ids, _ = self._applied(messages, record)
            return Document(ids, [True] * len(ids))
        if record.prompt is not None:
            before, ids = self._prefix(messages, record.prompt, record), self._applied(messages, record)[0]
            self._check_prefix(before, ids, record.prompt)
            return Document(ids, [k >= len(before) for k in range(len(ids))])
        if self._marks and self.train_on != "completion":
            ids, marks = self._applied(messages, record, return_assistant_tokens_mask=True)
            if marks is None or len(marks) != len(ids):
                raise MotleyError("the tokenizer returns no assistant_masks, although its chat template has {% generation %}. Update transformers")
            return Document(ids, [mark == 1 for mark in marks])
        return self._by_prefixes(messages, turns[-1:] if self.train_on == "completion" else turns, record)

    def _by_prefixes(self, messages: Messages, turns: List[int], record: Record) -> Document:
        """Each turn is what is between the messages before it, with the head of an answer, and the messages up to it."""
        ids, _ = self._applied(messages, record)
        trained = [False] * len(ids)
        for turn in turns:
            before = self._prefix(messages, turn, record)
            upto = ids if turn + 1 == len(messages) else self._applied(messages[:turn + 1], record)[0]
            self._check_prefix(before, upto, turn)
            self._check_prefix(upto, ids, turn + 1)
            trained[len(before):len(upto)] = [True] * (len(upto) - len(before))
        return Document(ids, trained)

    def _prefix(self, messages: Messages, turn: int, record: Record) -> List[int]:
        if turn == 0:
            raise BadRecord("the first message is the assistant's, so its tokens cannot be told from what the template puts before them. "
                            "Begin with a message of the role 'user' or 'system', or use a template with {% generation %}")
        return self._applied(messages[:turn], record, add_generation_prompt=True)[0]

    @staticmethod
    def _check_prefix(before: List[int], ids: List[int], count: int) -> None:
        if ids[:len(before)] != before or len(ids) < len(before):
            raise BadRecord(f"the chat template renders the first {count} messages alone in another way than at the start of the conversation "
                            f"(token {_common(before, ids)} differs), so the tokens of the answers cannot be told apart. Use a template with "
                            "{% generation %} around the answers, split the conversation after each answer into a prompt and a completion, or "
                            'pass train_on="all"')

    def _applied(self, messages: Messages, record: Record, **options: Any) -> Tuple[List[int], Optional[List[int]]]:
        if record.tools is not None:
            options["tools"] = record.tools
        found = _guarded("the chat template", lambda: self._tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True, **options))
        return _integers(found["input_ids"]), found.get("assistant_masks")

    def _ids(self, text: str) -> List[int]:
        """Of a text that already begins with bos_token, such as a rendered chat, without a second one."""
        ids = _integers(_guarded("the tokenizer", lambda: self._tokenizer(text))["input_ids"])
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


def _template(tokenizer: Any) -> Optional[str]:
    found = getattr(tokenizer, "chat_template", None)
    if isinstance(found, dict):  # several by name
        found = found.get("default")
    return found if isinstance(found, str) and found else None


def _templates(tokenizer: Any) -> List[str]:
    """All of them: transformers takes the one with the name tool_use for records with tools."""
    found = getattr(tokenizer, "chat_template", None)
    return [str(found[name]) for name in sorted(found)] if isinstance(found, dict) else [found] if isinstance(found, str) else []


def _guarded(what: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # jinja's, for roles that a template refuses, and those of tokenizers
        raise BadRecord(f"{what} raises {summary(error)}") from error


def _integers(ids: Any) -> List[int]:
    found = ids.tolist() if hasattr(ids, "tolist") else ids
    if not isinstance(found, list) or not all(isinstance(token, int) for token in found):
        raise MotleyError(f"the tokenizer returns input_ids of {type(ids).__name__} instead of a list of integers for one text")
    return found


def _common(one: List[int], other: List[int]) -> int:
    """The length of the common start."""
    return next((k for k, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
