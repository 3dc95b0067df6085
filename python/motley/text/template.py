"""The chat template of a tokenizer, applied to the messages of a record in the form that it reads, on a fixed day."""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from ..errors import MotleyError, summary
from .json_records import strict_json
from .messages import BadRecord, Messages
from .records import Record

_GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")

_RESERVED = {"conversation", "messages", "tools", "documents", "chat_template", "add_generation_prompt", "continue_final_message", "tokenize",
             "padding", "truncation", "max_length", "return_tensors", "return_dict", "return_assistant_tokens_mask", "sanitize_control_tokens",
             "tokenizer_kwargs", "strftime_now"}
"""Options of apply_chat_template that belong to Motley."""

_DATED = re.compile(r"\bstrftime_now\s*\(")
_DATED_BY = re.compile(r"""\bstrftime_now\s*\(\s*(["'])(.*?)\1\s*\)""")
"""Calls of strftime_now with a format that the template has as it is."""

_PROBE = "motley 7 probe"


class Template:
    """`options`: further variables of the template, such as {"enable_thinking": False}."""

    def __init__(self, tokenizer: Any, options: Optional[Mapping[str, Any]]):
        self._tokenizer = tokenizer
        self._texts = _templates(tokenizer)
        self.text = _template(tokenizer)
        self.marks = self.text is not None and all(map(_GENERATION.search, self._texts)) and bool(getattr(tokenizer, "is_fast", True))
        """Whether {% generation %} marks the answers."""
        self.writes_date = self.text is not None and any(map(_DATED.search, self._texts))
        self.day: Optional[datetime.date] = None
        """What strftime_now writes, if it is set."""
        self.options = _checked(options)
        self._reads_parts: Optional[bool] = None

    @property
    def sha256(self) -> Optional[str]:
        return None if self.text is None else hashlib.sha256("\0".join(self._texts).encode("utf-8", "surrogatepass")).hexdigest()

    def readable(self, record: Record) -> Record:
        """The record with contents as the template reads them, as texts or as lists of parts, and arguments of tools as objects where the
        template would quote a text again."""
        if self._reads_parts is None:
            self._reads_parts = self._probed()
        form = _as_parts if self._reads_parts else _as_text
        messages = [{**message, "content": form(message["content"])} if "content" in message else message for message in record.messages]
        return self._with_objects(record._replace(messages=messages))

    def ids(self, messages: Messages, record: Record, **options: Any) -> Tuple[List[int], Optional[List[int]]]:
        """The tokens, and those that {% generation %} marks with return_assistant_tokens_mask=True. Raises BadRecord."""
        found = self._applied(messages, record, tokenize=True, return_dict=True, **options)
        return integers(found["input_ids"]), found.get("assistant_masks")

    def _applied(self, messages: Messages, record: Record, **options: Any) -> Any:
        if record.tools is not None:
            options["tools"] = record.tools
        if self.day is not None:
            options["chat_template"] = self._dated(record.tools is not None)
        own = record.options and _checked(record.options, BadRecord)
        return guarded("the chat template", lambda: self._tokenizer.apply_chat_template(messages, **options, **{**self.options, **own}))

    def _dated(self, with_tools: bool) -> str:
        """The template that transformers chooses, with the day in place of its calls of strftime_now: a function cannot be passed to it."""
        given = self._tokenizer.chat_template
        text = str(given["tool_use" if with_tools and "tool_use" in given else "default"]) if isinstance(given, dict) else self.text
        day = datetime.datetime.combine(self.day, datetime.time())
        found = _DATED_BY.sub(lambda call: json.dumps(day.strftime(call[2])), text)
        if _DATED.search(found):
            raise MotleyError("the chat template calls strftime_now with a format that it computes, so the date cannot be fixed, and tokens would change "
                              "from day to day. Set tokenizer.chat_template to one with the date in it")
        return found

    def _probed(self) -> bool:
        """Whether the template reads contents only as lists of parts, and drops texts, as those of some models with images do."""
        def is_rendered(content: Any) -> bool:
            try:
                return _PROBE in self._applied([{"role": "user", "content": content}], Record("chat"), tokenize=False)
            except Exception:  # it refuses this conversation, or the object has only the part of the interface that tokenizes
                return False

        return not is_rendered(_PROBE) and is_rendered(_as_parts(_PROBE))

    def _with_objects(self, record: Record) -> Record:
        texts = [function["arguments"] for function in _functions(record.messages) if isinstance(function.get("arguments"), str)]
        if not texts:
            return record
        rendered = self._applied(record.messages, record, tokenize=False)
        if not any(json.dumps(text, ensure_ascii=ascii_only) in rendered for text in texts for ascii_only in (False, True)):
            return record
        messages = copy.deepcopy(record.messages)
        for function in _functions(messages):
            if isinstance(function.get("arguments"), str):
                try:
                    function["arguments"] = strict_json(function["arguments"].encode("utf-8", "surrogatepass"))
                except ValueError as error:
                    raise BadRecord(f"the arguments of {function.get('name')!r} are no valid JSON: {error}") from error
        return record._replace(messages=messages)


def _functions(messages: Messages) -> List[Dict[str, Any]]:
    calls = [call for message in messages for call in (message.get("tool_calls") or []) if isinstance(call, dict)]
    return [found for call in calls for found in [call.get("function", call)] if isinstance(found, dict)]


def _as_text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def _as_parts(content: Any) -> Any:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _checked(options: Optional[Mapping[str, Any]], error: Any = MotleyError) -> Dict[str, Any]:
    """Refuses options that are not JSON, and those of Motley."""
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        raise error(f"chat_template_kwargs is {options!r}. Pass a dictionary such as {{'enable_thinking': False}}")
    reserved = sorted(_RESERVED & set(options))
    if reserved:
        raise error(f"chat_template_kwargs has {reserved[0]!r}, which motley.text decides. Pass variables of the chat template alone")
    try:
        return json.loads(json.dumps(dict(options), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as cause:
        raise error(f"chat_template_kwargs is not like JSON: {summary(cause)}. Pass texts, numbers, truth values, and lists or "
                    "objects of them") from cause


def _template(tokenizer: Any) -> Optional[str]:
    found = getattr(tokenizer, "chat_template", None)
    if isinstance(found, dict):  # several by name
        found = found.get("default")
    return found if isinstance(found, str) and found else None


def _templates(tokenizer: Any) -> List[str]:
    """All of them: transformers takes the one with the name tool_use for records with tools."""
    found = getattr(tokenizer, "chat_template", None)
    return [str(found[name]) for name in sorted(found)] if isinstance(found, dict) else [found] if isinstance(found, str) else []


def guarded(what: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # jinja's, for roles that a template refuses, and those of tokenizers
        raise BadRecord(f"{what} raises {summary(error)}") from error


def integers(ids: Any) -> List[int]:
    found = ids.tolist() if hasattr(ids, "tolist") else ids
    if not isinstance(found, list) or not all(isinstance(token, int) for token in found):
        raise MotleyError(f"the tokenizer returns input_ids of {type(ids).__name__} instead of a list of integers for one text. Pass a tokenizer; that of a "
                          "processor is processor.tokenizer")
    return found
