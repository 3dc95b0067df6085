"""The kinds of records, and their checks: chats, pairs of prompt and completion, instructions, and texts."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from .sources import Raw, strict_json

Messages = List[Dict[str, Any]]


class BadRecord(Exception):
    """A record that cannot be trained on; the text is the reason, without the place."""


class Record(NamedTuple):
    """`kind` is "chat", "completion", "instruction" or "text". A chat has `messages`, of which the first `prompt` belong to the prompt
    of a pair; the others have texts: `parts` are the prompt and the completion, or the text alone."""

    kind: str
    messages: Messages = []
    prompt: Optional[int] = None
    parts: List[str] = []
    tools: Any = None

    @property
    def is_empty(self) -> bool:
        return not self.messages and not any(part.strip() for part in self.parts[-1:])


ALPACA = ("Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n### Instruction:\n"
          "{instruction}\n\n### Response:\n")
ALPACA_INPUT = ("Below is an instruction that describes a task, paired with an input that provides further context. Write a response that "
                "appropriately completes the request.\n\n### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n")
"""The prompts of Stanford's Alpaca, for tokenizers without a chat template."""


def parse(raw: Raw, has_template: bool) -> Optional[Record]:
    """None for a blank line. `has_template`: instructions become chats."""
    value = raw.value
    if raw.is_text:
        assert isinstance(value, bytes)
        try:
            return Record("text", parts=[_text(value.decode("utf-8"), "the text")])
        except UnicodeDecodeError as error:
            raise BadRecord(f"byte {error.start} (0x{value[error.start]:02x}) is not UTF-8") from error
    if isinstance(value, bytes):
        if not value.strip():
            return None
        try:
            value = strict_json(value)
        except ValueError as error:
            raise BadRecord(f"no valid JSON: {error}") from error
    else:
        value = _without_nulls(value)
    if not isinstance(value, Mapping):
        raise BadRecord(f"a {_type(value)} instead of an object such as {{\"messages\": […]}}")
    return _record(value, has_template)


def _without_nulls(value: Any) -> Any:
    """Rows of tables have null in the place of a key that others have."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, (list, tuple)) else value


def _record(row: Mapping[str, Any], has_template: bool) -> Record:
    keys = {key for key, value in row.items() if value is not None}
    if "messages" in keys:
        return Record("chat", _messages(row["messages"], "messages"), tools=_tools(row))
    if "prompt" in keys or "completion" in keys:
        _require(row, keys, "prompt", "completion")
        if isinstance(row["prompt"], str) and isinstance(row["completion"], str):
            return Record("completion", parts=[_text(row["prompt"], "'prompt'"), _text(row["completion"], "'completion'")])
        prompt = _messages(row["prompt"], "prompt")
        return Record("completion", prompt + _messages(row["completion"], "completion"), len(prompt), tools=_tools(row))
    if "instruction" in keys or "output" in keys:
        _require(row, keys, "instruction", "output")
        return _instruction(_text(row["instruction"], "'instruction'"), _text(row.get("input") or "", "'input'"), _text(row["output"], "'output'"),
                            has_template)
    if "text" in keys:
        return Record("text", parts=[_text(row["text"], "'text'")])
    hint = "; rename 'conversations' with 'from' and 'value' to 'messages' with 'role' and 'content'" if "conversations" in keys else ""
    raise BadRecord(f"it has {_listed(keys)}, and none of 'messages', 'prompt' with 'completion', 'instruction' with 'output', or 'text'{hint}")


def _instruction(instruction: str, given: str, output: str, has_template: bool) -> Record:
    if has_template:
        question = f"{instruction}\n\n{given}" if given else instruction
        messages = [{"role": "user", "content": question}, {"role": "assistant", "content": output}]
        return Record("instruction", messages if output.strip() else [], 1, parts=[output])
    return Record("instruction", parts=[(ALPACA_INPUT if given else ALPACA).format(instruction=instruction, input=given), output])


def _require(row: Mapping[str, Any], keys: Any, *names: str) -> None:
    for name in names:
        if name not in keys:
            what = "is null" if name in row else "is missing"
            raise BadRecord(f"{name!r} {what}; it has {_listed(keys)}")


def _messages(given: Any, key: str) -> Messages:
    if not isinstance(given, (list, tuple)):
        raise BadRecord(f"{key!r} is a {_type(given)} instead of a list of messages")
    return [_message(message, f"{key}[{k}]") for k, message in enumerate(given)]


def _message(given: Any, place: str) -> Dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadRecord(f"{place} is a {_type(given)} instead of an object with 'role' and 'content'")
    message = {key: value for key, value in given.items() if value is not None}
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise BadRecord(f"{place} has no 'role', but {_listed(message)}")
    if isinstance(content, str):
        _text(content, f"{place}['content']")
    elif isinstance(content, (list, tuple)):
        for part in content:
            if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
                raise BadRecord(f"{place}['content'] has a part that is not text")
            _text(part["text"], f"{place}['content']")
    elif content is not None or not message.get("tool_calls"):
        raise BadRecord(f"{place}['content'] is {'missing' if content is None else 'a ' + _type(content)}")
    return message


def _tools(row: Mapping[str, Any]) -> Any:
    tools = row.get("tools")
    if isinstance(tools, str):
        try:
            return strict_json(tools.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise BadRecord(f"'tools' is no valid JSON: {error}") from error
    if tools is not None and not isinstance(tools, (list, tuple)):
        raise BadRecord(f"'tools' is a {_type(tools)} instead of a list")
    return tools or None


def _text(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise BadRecord(f"{what} is a {_type(given)} instead of a text")
    try:
        given.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRecord(f"{what} has half of a surrogate pair (\\u{ord(given[error.start]):04x}) at character {error.start}") from error
    return given


def _type(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _listed(keys: Any) -> str:
    names = sorted(json.dumps(str(key), ensure_ascii=True)[:40] for key in keys)
    return f"the keys {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "no keys"
