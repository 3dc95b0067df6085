"""Conversations of records: their checks, and the usual forms that are converted to messages with role and content."""

from __future__ import annotations

import json
from typing import Any, Dict, FrozenSet, List, Mapping

Messages = List[Dict[str, Any]]


class BadRecord(Exception):
    """A record that cannot be trained on; the text is the reason, without the place."""


_SHAREGPT = {"human": "user", "user": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
             "assistant": "assistant", "model": "assistant", "system": "system", "tool": "tool"}
"""The roles of ShareGPT's 'from'."""

_UNTRAINED = {"weight": 0, "train": False}
"""Marks of a message that is not trained on: OpenAI's and axolotl's."""


_SAID = ("tool_calls", "reasoning_content", "reasoning", "thinking")
"""What an answer may consist of beside its content."""


def messages(given: Any, key: str) -> Messages:
    if not isinstance(given, (list, tuple)):
        raise BadRecord(f"{key!r} is a {type_of(given)} instead of a list of messages")
    return [_message(message, f"{key}[{k}]") for k, message in enumerate(given)]


def with_system(row: Mapping[str, Any], found: Messages) -> Messages:
    """The messages, after that of a key 'system' beside them."""
    system = text(row.get("system") or "", "'system'")
    if not system.strip():
        return found
    if found and found[0]["role"] in ("system", "developer"):
        raise BadRecord(f"it has both 'system' and a first message of the role {found[0]['role']!r}. Remove one")
    return [{"role": "system", "content": system}, *found]


def untrained(found: Messages) -> FrozenSet[int]:
    """The messages that are marked as not to be trained on."""
    marked = set()
    for k, message in enumerate(found):
        for name, off in _UNTRAINED.items():
            if name in message and message[name] not in (0, 1):
                raise BadRecord(f"messages[{k}][{name!r}] is {message[name]!r}. Motley trains on a message (1, true) or not (0, false)")
            if name in message and message[name] == off:
                marked.add(k)
    return frozenset(marked)


def is_blank(message: Mapping[str, Any]) -> bool:
    """Whether a message says nothing: neither text, nor calls of tools, nor thoughts."""
    content = message.get("content") or ""
    said = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return not said.strip() and not any(message.get(key) for key in _SAID)


def _message(given: Any, place: str) -> Dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BadRecord(f"{place} is a {type_of(given)} instead of an object with 'role' and 'content'")
    message = {key: value for key, value in given.items() if value is not None}
    if "from" in message and "role" not in message:
        message = _of_sharegpt(message, place)
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not role:
        raise BadRecord(f"{place} has no 'role', but {listed(message)}")
    if not isinstance(message.get("tool_calls") or [], (list, tuple)):
        raise BadRecord(f"{place}['tool_calls'] is a {type_of(message['tool_calls'])} instead of a list")
    if message.get("function_call"):
        raise BadRecord(f"{place} has 'function_call', the older form of 'tool_calls': [{{\"type\": \"function\", \"function\": {{…}}}}]")
    if isinstance(content, str):
        text(content, f"{place}['content']")
    elif isinstance(content, (list, tuple)):
        for part in content:
            if not isinstance(part, Mapping) or part.get("type") != "text" or not isinstance(part.get("text"), str):
                raise BadRecord(f"{place}['content'] has a part that is not text")
            text(part["text"], f"{place}['content']")
    elif content is not None or not message.get("tool_calls"):
        raise BadRecord(f"{place}['content'] is {'missing' if content is None else 'a ' + type_of(content)}")
    return message


def _of_sharegpt(message: Mapping[str, Any], place: str) -> Dict[str, Any]:
    role, value = _SHAREGPT.get(str(message["from"]).lower()), message.get("value")
    if role is None:
        raise BadRecord(f"{place}['from'] is {json.dumps(str(message['from']))[:40]}, and none of {', '.join(_SHAREGPT)}. Convert it "
                        "to 'messages' with 'role' and 'content', and calls of tools to 'tool_calls'")
    others = {key: each for key, each in message.items() if key not in ("from", "value")}
    return {"role": role, "content": text(value, f"{place}['value']"), **{key: each for key, each in others.items() if key in _UNTRAINED}}


def text(given: Any, what: str) -> str:
    """Raises BadRecord if it is none."""
    if not isinstance(given, str):
        raise BadRecord(f"{what} is {'missing' if given is None else 'a ' + type_of(given) + ' instead of a text'}")
    try:
        given.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadRecord(f"{what} has half of a surrogate pair (\\u{ord(given[error.start]):04x}) at character {error.start}") from error
    return given


def type_of(value: Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth value", int: "number", float: "number", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def listed(keys: Any) -> str:
    names = sorted(json.dumps(str(key), ensure_ascii=True)[:40] for key in keys)
    return f"the keys {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "no keys"
