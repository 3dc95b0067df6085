"""The kinds of records, and their checks: chats, pairs of prompt and completion, instructions, and texts."""

from __future__ import annotations

from typing import Any, Dict, FrozenSet, List, Mapping, NamedTuple, Optional

from .json_records import strict_json
from .messages import BadRecord, Messages, is_blank, listed, messages, text, type_of, untrained, with_system
from .sources import Raw


class Record(NamedTuple):
    """`kind` is "chat", "completion", "instruction" or "text". A chat has `messages`, of which the first `prompt` belong to the prompt
    of a pair, and those in `untrained` are not trained on; the others have texts: `parts` are the prompt and the completion, or the text
    alone. `options`: of its own for the chat template."""

    kind: str
    messages: Messages = []
    prompt: Optional[int] = None
    parts: List[str] = []
    tools: Any = None
    options: Dict[str, Any] = {}
    untrained: FrozenSet[int] = frozenset()

    @property
    def turns(self) -> List[int]:
        """The messages of the assistant, in a pair those of the completion."""
        return [k for k, message in enumerate(self.messages) if message["role"] == "assistant" and k >= (self.prompt or 0)]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say: no text, or no answer with any."""
        if self.messages:
            return bool(self.turns) and all(is_blank(self.messages[k]) for k in self.turns)
        return not any(part.strip() for part in self.parts[-1:])


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
        return Record("text", parts=[_decoded(value)])
    if isinstance(value, bytes):
        if not value.strip():
            return None
        try:
            value = strict_json(value)
        except ValueError as error:
            raise BadRecord(f"no valid JSON: {error}") from error
    elif raw.is_table:
        value = _without_nulls(value)
    if not isinstance(value, Mapping):
        raise BadRecord(f"a {type_of(value)} instead of an object such as {{\"messages\": […]}}")
    return _record(value, has_template)


def _decoded(value: bytes) -> str:
    """Of a text file."""
    try:
        found = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(f"byte {error.start} (0x{value[error.start]:02x}) is not UTF-8. Convert the file with `iconv -f CP1252 -t UTF-8`, or from "
                        "what it is") from error
    if "\0" in found:
        raise BadRecord(f"character {found.index(chr(0))} is a zero, so it is no text, or UTF-16. Convert it with `iconv -f UTF-16 -t UTF-8`")
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, (list, tuple)) else value


def _record(row: Mapping[str, Any], has_template: bool) -> Record:
    keys = {key for key, value in row.items() if value is not None}
    key = next((key for key in ("messages", "conversations") if key in keys), None)
    if key is not None:
        return _chat(row, with_system(row, messages(row[key], key)))
    if "prompt" in keys and "chosen" not in keys or "completion" in keys:
        _require(row, keys, "prompt", "completion")
        if isinstance(row.get("label"), bool):
            raise BadRecord("'label' says whether the completion is wanted, and Motley trains on wanted ones alone. Remove the records with false, and "
                            "the key from the others")
        if isinstance(row["prompt"], str) and isinstance(row["completion"], str):
            _refuse(row, "system", "a chat is a list of messages in 'messages'")
            return Record("completion", parts=[text(row["prompt"], "'prompt'"), text(row["completion"], "'completion'")])
        prompt = with_system(row, messages(row["prompt"], "prompt"))
        return _chat(row, prompt + messages(row["completion"], "completion"), "completion", len(prompt))
    if "instruction" in keys or "output" in keys and "input" not in keys:
        _require(row, keys, "instruction", "output")
        _refuse(row, "history", "convert earlier turns to a chat in 'messages'")
        return _instruction(row, has_template)
    if "text" in keys:
        return Record("text", parts=[text(row["text"], "'text'")])
    raise BadRecord(f"it has {listed(keys)}, and none of 'messages', 'conversations', 'prompt' with 'completion', 'instruction' with 'output', or "
                    f"'text'{_hint(row, keys)}")


def _chat(row: Mapping[str, Any], found: Messages, kind: str = "chat", prompt: Optional[int] = None) -> Record:
    _refuse(row, "functions", "they are the older form of 'tools'")
    options = row.get("chat_template_kwargs") or {}
    if not isinstance(options, Mapping):
        raise BadRecord(f"'chat_template_kwargs' is a {type_of(options)} instead of an object")
    return Record(kind, found, prompt, tools=_tools(row), options=dict(options), untrained=untrained(found))


def _instruction(row: Mapping[str, Any], has_template: bool) -> Record:
    instruction, output = text(row["instruction"], "'instruction'"), text(row["output"], "'output'")
    given = text(row.get("input") or "", "'input'")
    if has_template:
        question = f"{instruction}\n\n{given}" if given else instruction
        found = with_system(row, [{"role": "user", "content": question}, {"role": "assistant", "content": output}])
        return Record("instruction", found, len(found) - 1)
    _refuse(row, "system", "the tokenizer has no chat template")
    return Record("instruction", parts=[(ALPACA_INPUT if given else ALPACA).format(instruction=instruction, input=given), output])


def _refuse(row: Mapping[str, Any], key: str, why: str) -> None:
    """A key that would be ignored, if there is anything in it."""
    if row.get(key):
        raise BadRecord(f"{key!r} is not read: {why}")


_ANSWERS = (("question", "answer"), ("question", "response"), ("query", "response"), ("input", "output"), ("user", "assistant"))


def _hint(row: Mapping[str, Any], keys: Any) -> str:
    if "chosen" in keys:
        name = "'completion'" if "prompt" in keys else "'messages'"
        return f". Motley does not train on preferences; to train on the chosen answers rename 'chosen' to {name} and remove 'rejected'"
    for question, answer in _ANSWERS:
        if {question, answer} <= keys:
            return f". Rename {question!r} to 'prompt' and {answer!r} to 'completion', or to 'instruction' and 'output' for a chat"
    for key in sorted(keys, key=str):
        if isinstance(row[key], list) and len(row[key]) > 1 and all(isinstance(each, Mapping) for each in row[key]):
            return f". {key!r} is a list of {len(row[key]):,} objects; if these are the records, write them one per line, or pass them as a list"
    return ""


def _require(row: Mapping[str, Any], keys: Any, *names: str) -> None:
    for name in names:
        if name not in keys:
            what = "is null" if name in row else "is missing"
            raise BadRecord(f"{name!r} {what}; it has {listed(keys)}")


def _tools(row: Mapping[str, Any]) -> Any:
    tools = row.get("tools")
    if isinstance(tools, str):
        try:
            return strict_json(tools.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise BadRecord(f"'tools' is no valid JSON: {error}") from error
    if tools is not None and not isinstance(tools, (list, tuple)):
        raise BadRecord(f"'tools' is a {type_of(tools)} instead of a list")
    return tools or None
