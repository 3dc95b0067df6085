"""Inputs by name that a model takes but does not read, such as a misspelled one that its **kwargs accept."""

from __future__ import annotations

import contextlib
import difflib
from typing import Any, Callable, Iterable, List, Mapping, Optional, Set

import torch
from torch.utils._pytree import tree_flatten

from .errors import ExportError
from .graph import leaves
from .layers import Layers
from .modules import preserved_state
from .named import ByName, Input, names_taken, take
from .padding import TARGETS
from .trial import preserved_generators
from .virtual import preserved_attributes


class Watched(torch.Tensor):
    """An input that records in `seen` each use of its values, sizes or type; passing it on is no use."""

    seen: Set[str]
    input_name: str

    @staticmethod
    def of(tensor: torch.Tensor, name: str, seen: Set[str]) -> "Watched":
        made = tensor.as_subclass(Watched)
        made.input_name, made.seen = name, seen
        return made

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for leaf in leaves([args, list((kwargs or {}).values())]):
            if isinstance(leaf, Watched) and hasattr(leaf, "seen"):
                leaf.seen.add(leaf.input_name)
        with torch._C.DisableTorchFunction():  # type: ignore[attr-defined]
            return func(*args, **(kwargs or {}))


def used(call: Callable[[Any], Any], input: Mapping[str, torch.Tensor], names: Iterable[str]) -> Optional[Set[str]]:
    """Those of the inputs `names` whose values, sizes or types a call uses, or that it returns; None if it raises."""
    seen: Set[str] = set()
    given = {name: Watched.of(tensor, name, seen) if name in set(names) else tensor for name, tensor in input.items()}
    try:
        with torch.no_grad():
            returned = call(dict(given))
    except Exception:  # any error of the user's code, which the caller's own run reports
        return None
    results = {id(leaf) for leaf in tree_flatten(returned)[0]}
    return seen | {name for name in names if id(given[name]) in results}


def refusal(model: torch.nn.Module, names: List[str], given: Iterable[str]) -> ExportError:
    """The error for the inputs `names` of `given`, which no operation of `model` reads."""
    taken = names_taken(model)
    others = [name for name in taken if name not in given and name not in TARGETS]  # the loss takes targets
    close = {name: difflib.get_close_matches(name, others, 1) for name in names}
    meant = [f"{match[0]!r} instead of {name!r}" for name, match in close.items() if match]
    several = len(names) > 1
    reason = (f"no operation of {type(model).__name__} reads the input{'s' if several else ''} {', '.join(map(repr, names))}, so "
              f"{'they' if several else 'it'} would have no effect" + (f". Its forward names {listed(taken)}" if taken else ""))
    return ExportError(reason, (f"Perhaps the name is {' and '.join(meant)}. " if meant else "")
                       + f"Correct the name{'s' if several else ''} or leave the input{'s' if several else ''} out")


def listed(names: List[str]) -> str:
    most = 16
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def notice(names: List[str], what: str, sizes_alone: bool = False) -> Optional[str]:
    """The notice that `what` does not use the values of the inputs `names`; None if there are none."""
    if not names:
        return None
    named = f"the input{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"
    return f"{what} uses only the size or the type of {named}, not the values" if sizes_alone else f"{what} does not use {named}"


def with_notice(described: Layers, input: Input) -> Layers:
    """The layers of a list by hand, with a notice about inputs that the first one does not use. Refuses them if it is a module."""
    if not isinstance(input, Mapping):
        return described
    name, first = described.layers[0]
    roots = [root for _, root in described.roots]
    with contextlib.ExitStack() as held:
        for each in (preserved_generators(), preserved_state(roots), *(preserved_attributes(root, Watched) for root in roots)):
            held.enter_context(each)
        names = list(input)
        for training in (False, True):
            for root in roots:
                root.train(training)
            seen = used(first, take(input, [0, 0]), names)
            if seen is None:
                return described
            names = [one for one in names if one not in seen]
    if names and isinstance(first, ByName):
        raise refusal(first.module, names, list(input))
    found = notice(names, f"the layer {name}")
    return described._replace(notices=(*described.notices, found)) if found else described
