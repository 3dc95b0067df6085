"""`motley.split`: the layers of a model, by a trace of the whole, or of models that are known by their structure."""

from __future__ import annotations

import contextlib
from typing import Any, Optional

import torch

from .. import outputs
from ..errors import ExportError
from ..layers import Call, Layers, Names
from ..lines import guarded
from ..modules import ModuleStack, left_alone
from ..number_types import as_float32
from ..trial import generators_as_before
from ..virtual import attributes_as_before, without_values
from . import gpt2, llama, resnet, sequential, vit
from .divide import divide
from .program import Program
from .whole_trace import WholeTracer, whole_model

_SPLITTERS = (sequential, gpt2, llama, resnet, vit)


def split(model: torch.nn.Module, example: Any = None, *, forward: Optional[Call] = None) -> Layers:
    """The layers of `model`, in order, named as its modules; tensors keep the names of its state_dict.

    example   an input of the model, or (input, target): the whole forward is traced with it and cut between the model's blocks
    forward   the model's call, input -> output, if it is not model(input)

    Without an example the layers of known models are found by their structure: `nn.Sequential`, `transformers`' GPT2LMHeadModel and
    LlamaForCausalLM, `torchvision`'s ResNet and VisionTransformer, and models with the same attribute names. `export` compares the
    layers with the model, in `train()` and `eval()` mode. Others are split by hand: a list of (name, module or function), each called
    with what the one before returned.
    """
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"a {type(model).__name__} was given in place of a model", "Give a torch.nn.Module")
    if example is not None:
        return _by_trace(model, example, forward)
    inner = _inner(model)
    for splitter in _SPLITTERS:
        try:
            if splitter.knows(inner):
                return Layers(splitter.layers(inner), [("", model)], forward or model, model, "forward" if forward else "split")
        except Exception:  # it resembles a known model but is not one
            continue
    raise ExportError(
        f"{type(model).__name__} is not among the models that motley.split knows by their structure",
        'Give an input, with which it is traced: motley.split(model, input), as motley.train does. By hand, as one layer it is [("all", model)]; as '
        f"several a list of (name, function), each called with what the one before returned. {_blocks(model)}")


def _by_trace(model: torch.nn.Module, example: Any, forward: Optional[Call]) -> Layers:
    input = example[0] if isinstance(example, (tuple, list)) and example else example
    if not isinstance(input, torch.Tensor) or input.dim() < 1 or input.size(0) < 1:
        raise ExportError("the example is no tensor of samples", "Give an input with a first dimension of samples, or (input, target); pack several "
                          "inputs into one tensor, and give forward=, a function of it that calls the model")
    whole = whole_model(model, forward)
    with guarded("the model cannot be read", _OWN_FAULT):
        names = Names(whole)
    with contextlib.ExitStack() as held:
        held.enter_context(as_float32(names.state.values()))
        names.check()
        held.enter_context(left_alone([model]))
        held.enter_context(generators_as_before())
        stack = held.enter_context(ModuleStack(names.modules))
        tracer = WholeTracer(whole, names, stack)
        model.train()
        train = _recorded(model, tracer, input, forward is not None)
        model.eval()
        evaluate = _recorded(model, tracer, input, forward is not None)
        with guarded("the model cannot be cut", _OWN_FAULT):
            segments = divide(model, train, evaluate)
    if type(model) is torch.nn.Sequential and forward is None:
        modules = sequential.layers(model)
        if len(modules) >= len(segments):
            return whole._replace(layers=list(modules))
    if len(segments) == 1:
        if forward is None:
            whole = whole._replace(layers=[(whole.layers[0][0], lambda given: outputs.main(model(given)))])
        return whole._replace(notices=(f"{type(model).__name__} is one layer, for its trace has no place to cut it: one machine at a time trains it, or "
                                       "replicas do. A list of layers by hand may divide it",))
    return whole._replace(layers=[(segment.name, segment) for segment in segments], traced=True)


def _recorded(model: torch.nn.Module, tracer: WholeTracer, input: torch.Tensor, exact: bool) -> Program:
    """Without values, which would be the activations of the whole model; with them, if a module asks for them."""
    try:
        with attributes_as_before(model):
            return tracer.program(without_values(input), exact)
    except ExportError:
        return tracer.program(input, exact)


_OWN_FAULT = "This is a fault of Motley's, which should say more; a list of layers by hand avoids it"


def _inner(model: torch.nn.Module) -> torch.nn.Module:
    """The model inside a wrapper of peft, with its adapters; any other model itself."""
    return model.get_base_model() if isinstance(getattr(model, "peft_config", None), dict) and hasattr(model, "get_base_model") else model


def _blocks(model: torch.nn.Module) -> str:
    """The repeated parts of a model, from which layers are built."""
    found = [(path, module) for path, module in model.named_modules()
             if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and len(module) > 1
             and len({type(part) for part in module}) == 1]
    found = [(path, module) for path, module in found if not any(path.startswith(outer + ".") for outer, _ in found if outer)]
    if not found:
        return "What its forward does from input to output, cut into functions, is that list."
    named = ", ".join(f"model.{path} ({len(module)} × {type(next(iter(module))).__name__})" if path else f"its {len(module)} parts"
                      for path, module in found[:4])
    return (f"Its repeated parts are {named}: a layer for each, and before, between and after them functions for what its forward does there "
            "besides, such as embeddings, positions, masks, what a part is given besides the last result, norms and the head")
