"""Inputs of a model: one tensor, or several by name, which are its keyword arguments."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, Mapping, Optional, Union

import torch

from .errors import ExportError

Input = Union[torch.Tensor, Dict[str, torch.Tensor]]
"""Samples of one input, or of each input by name."""

Limit = Union[None, int, Mapping[str, Optional[int]]]
"""Integers lie from 0 to below it; of named inputs, for each name. None if there is no limit, or it is unknown."""

LONGEST = 100
"""Characters of a name, which is a part of file names."""


def by_name(input: Any) -> Dict[str, Any]:
    """The inputs by name; a single one without name has the name ""."""
    return dict(input) if isinstance(input, Mapping) else {"": input}


def tensors(input: Input) -> List[torch.Tensor]:
    return list(by_name(input).values())


def each(function: Callable[[torch.Tensor], torch.Tensor], input: Input) -> Input:
    """The same kind of input, of the results of `function`."""
    return {name: function(tensor) for name, tensor in input.items()} if isinstance(input, Mapping) else function(input)


def count(input: Input) -> int:
    """The number of samples."""
    return tensors(input)[0].size(0)


def take(input: Input, samples: List[int]) -> Input:
    """These samples, which may repeat."""
    return each(lambda tensor: tensor[samples], input)


def limits(limit: Limit, input: Any) -> List[Optional[int]]:
    """The limit of each input."""
    names = by_name(input)
    if isinstance(limit, Mapping):
        unknown = [name for name in limit if name not in names]
        if unknown or not isinstance(input, Mapping):
            raise ExportError(f"input_limit= has {', '.join(map(repr, unknown or limit))}, and the inputs are "
                              f"{', '.join(map(repr, names)) if isinstance(input, Mapping) else 'one tensor'}", "Pass the limits of these")
        return [limit.get(name) for name in names]
    if limit is not None and isinstance(input, Mapping):
        raise ExportError(f"input_limit= is {limit!r}, and the inputs have names", "Pass a dictionary of the names with their limits")
    return [limit] * len(names)


def limits_of(description: Mapping[str, Any]) -> List[Optional[int]]:
    """The limits of a package's inputs, in their order; None for floats, and for integers that have none."""
    if "inputs" in description:
        return [entry["limit"] for entry in description["inputs"]]
    return [description["input_limit"] or None]


def check_names(names: List[Any]) -> None:
    """Refuses names that packages do not have."""
    for name in names:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii() and len(name) <= LONGEST):
            raise ExportError(f"an input has the name {name!r}",
                              f"Name inputs as arguments, by at most {LONGEST} letters, digits and underscores")
    lower = [name.lower() for name in names]
    twice = next((name for k, name in enumerate(names) if lower[k] in lower[:k]), None)
    if twice is not None:
        raise ExportError(f"two inputs have the name {twice!r} but for case", "Rename one; names become parts of file names")
    if not names:
        raise ExportError("the inputs are a dictionary without keys", "Pass at least one input")


class ByName:
    """Calls a module with a dictionary of inputs as its keyword arguments."""

    def __init__(self, module: torch.nn.Module):
        self.module = module

    def __call__(self, input: Dict[str, torch.Tensor]) -> Any:
        return self.module(**input)


def called_with(call: Any, input: Input) -> Any:
    """`call` for such inputs: a module gets named ones as keyword arguments, a function the dictionary."""
    return ByName(call) if isinstance(call, torch.nn.Module) and isinstance(input, Mapping) else call


def names_taken(module: torch.nn.Module) -> List[str]:
    """The arguments that a module's forward names, or that of the module inside a wrapper such as peft's; empty if none has names."""
    inner = getattr(module, "get_base_model", None)
    for one in (module, inner() if callable(inner) else None):
        try:
            parameters = inspect.signature(one.forward).parameters.values() if one is not None else ()
        except (TypeError, ValueError):  # a forward without a signature
            continue
        found = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if found:
            return found
    return []


def passed_and_taken(module: Any, input: Any) -> str:
    """A sentence with the names of the inputs and those that a module takes, for messages; empty if they have none."""
    taken = names_taken(module) if isinstance(module, torch.nn.Module) else []
    if not isinstance(input, Mapping) or not taken:
        return ""
    return f"The inputs are {', '.join(map(repr, input))}, and forward takes {', '.join(map(repr, taken))}. "


def check_takes(call: Any, input: Input) -> None:
    """Refuses a module that does not take inputs of these names."""
    if not isinstance(call, torch.nn.Module) or not isinstance(input, Mapping):
        return
    try:
        inspect.signature(call.forward).bind(**dict.fromkeys(input))
    except TypeError as error:
        raise ExportError(f"{type(call).__name__} is not called with inputs of the names {', '.join(map(repr, input))}: {error}",
                          f"{passed_and_taken(call, input)}"
                          "Name inputs as the arguments of the model's forward and leave out others, or pass forward=, a function "
                          "of the dictionary that calls the model") from error
    except ValueError:  # a forward without a signature
        pass
