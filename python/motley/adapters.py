"""Adapters of peft: their folder (docs/formats/package.md, "Model files"), and the call of a model with virtual tokens."""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import torch

from . import outputs
from .layers import Names
from .virtual import address

CONFIG = "adapter_config.json"

_BASE = "base_model.model."
"""Prefix of the adapted model's tensors in an adapter's file."""

_WITH_OUTPUTS_OF_PROMPTS = ("CAUSAL_LM", "TOKEN_CLS")
"""The tasks of peft whose models return an output for each virtual token too."""


class Adapter(NamedTuple):
    """The adapter that a model trains."""

    config: bytes
    """The content of adapter_config.json."""
    tensors: Dict[str, str]
    """[tensor of the state_dict] its name in adapter_model.safetensors, for all that peft saves of the adapter."""
    prefix: str
    """Prefix of the model's other tensors there."""


class Found(NamedTuple):
    adapter: Optional[Adapter]
    notices: Tuple[str, ...] = ()


class Stored(NamedTuple):
    """The content of an adapter's file that a package can provide."""

    names: Dict[str, str]
    """[trained tensor] its name in adapter_model.safetensors; empty if the file would be incomplete."""
    notices: Tuple[str, ...] = ()


def is_adapted(model: Any) -> bool:
    """Whether `model` has adapters of peft."""
    return bool(isinstance(getattr(model, "peft_config", None), dict) and model.peft_config)


def find_adapter(model: Any, names: Names) -> Found:
    """The adapter of `model` that is trained. REQUIRES: is_adapted(model)."""
    peft = sys.modules.get("peft")
    if peft is None:
        return Found(None)
    trained = {name for name, tensor in names.state.items() if tensor.requires_grad}
    prefix = "" if isinstance(model, peft.PeftModel) else _BASE
    found: Dict[str, Adapter] = {}
    for which, config in model.peft_config.items():
        saved = peft.get_peft_model_state_dict(model, adapter_name=which, save_embedding_layers=False)
        tensors, computed = _match(saved, names, trained)
        if computed:
            return Found(None, (_no_folder(f"{outputs.listed(computed)} in the adapter's file is computed from parameters"),))
        if not trained.isdisjoint(tensors):
            prefixed = {name: theirs if theirs.startswith(prefix) else prefix + theirs for name, theirs in tensors.items()}
            found[which] = Adapter(_config_json(config, model), prefixed, prefix)
    if len(found) > 1:
        return Found(None, (_no_folder(f"the adapters {outputs.listed(list(found))} are trained together"),))
    return Found(next(iter(found.values()), None))


def stored_in_checkpoints(adapter: Adapter, trained: Set[str]) -> Stored:
    """The file's tensors, if checkpoints with the tensors `trained` contain all of them. Other trained tensors are in the file
    as well, under their own names, by which peft loads them into the base."""
    lacking = [name for name in adapter.tensors if name not in trained]
    if lacking:
        cause = f"checkpoints lack {outputs.listed(lacking)}, which the adapter has and the run does not train"
        return Stored({}, (_no_folder(cause),))
    others = sorted(trained - set(adapter.tensors))
    notice = (f"{outputs.listed(others)} {'is' if len(others) == 1 else 'are'} trained in addition to the adapter: the file that "
              "run.save_pretrained writes has them, and peft loads them into the base; peft's own save_pretrained omits them")
    names = {**adapter.tensors, **{name: adapter.prefix + name for name in others}}
    return Stored(names, (notice,) if others else ())


def _no_folder(cause: str) -> str:
    return (f"run.save_pretrained writes the whole model and not the adapter's folder: {cause}. To write that folder, call "
            "model.load_state_dict(run.state_dict()) and model.save_pretrained(folder)")


def call_of(model: torch.nn.Module) -> Callable[[Any], Any]:
    """`model`, or a function that calls it and omits the outputs of virtual tokens, which precede those of its input."""
    config = getattr(model, "active_peft_config", None) if is_adapted(model) else None
    if not getattr(config, "is_prompt_learning", False) or config.task_type not in _WITH_OUTPUTS_OF_PROMPTS:
        return model

    def call(input: torch.Tensor) -> Any:
        result = outputs.main(model(input))
        return result if result is None else result[:, result.size(1) - input.size(1):]

    return call


def _match(saved: Dict[str, torch.Tensor], names: Names, trained: Set[str]) -> Tuple[Dict[str, str], List[str]]:
    """[tensor of the state_dict] its name in `saved`, and the names that no tensor has. Tensors are matched by their memory. A
    prompt is saved as a copy of its parameter, and is matched by its values."""
    by_address = {address(tensor): name for name, tensor in names.state.items() if tensor.numel()}
    found: Dict[str, str] = {}
    computed: List[str] = []
    for theirs, tensor in saved.items():
        name = by_address.get(address(tensor))
        if name is None:
            equal = [own for own in trained if outputs.equal(names.state[own], tensor)]
            name = equal[0] if len(equal) == 1 else None
        if name is None:
            computed.append(theirs)
        else:
            found[name] = theirs
    return found, computed


def _config_json(config: Any, model: Any) -> bytes:
    """As peft saves it. Without a task it names the class of the base, by which peft opens a folder without its base."""
    described = {key: sorted(value) if isinstance(value, set) else value for key, value in config.to_dict().items()}
    described["inference_mode"] = True
    if described.get("task_type") is None and hasattr(model, "get_base_model"):
        base = type(model.get_base_model())
        described["auto_mapping"] = {"base_model_class": base.__name__, "parent_library": base.__module__}
    return (json.dumps(described, indent=2, default=str) + "\n").encode("utf-8")
