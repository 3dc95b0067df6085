"""`motley.split`: divides a model into layers, by a trace of the whole model or by a known structure."""

from __future__ import annotations

import contextlib
from typing import Any, Mapping, Optional, Tuple

import torch

from .. import experts, outputs, unread
from ..errors import DataDependent, ExportError
from ..layers import Call, Layers, Names
from ..lines import guarded
from ..modules import ModuleStack, preserved_state
from ..named import Input, by_name, check_names, each, take
from ..half_precision import as_float32
from ..trial import preserved_generators
from ..virtual import Virtual, preserved_attributes, without_values
from . import gpt2, llama, resnet, sequential, vit
from .divide import divide
from .program import Program
from .whole_trace import WholeTracer, whole_model

_SPLITTERS = (sequential, gpt2, llama, resnet, vit)


def split(model: torch.nn.Module, example: Any = None, *, forward: Optional[Call] = None) -> Layers:
    """The layers of `model`, in order, named as its modules; tensors keep the names of its state_dict.

    example   an input of the model, or (input, target), with which the whole forward is traced and cut between the model's blocks.
              Several inputs are a dictionary by the names of the model's arguments
    forward   the model's call, input -> output, if it is not model(input)

    >>> layers = motley.split(model, images[:2])             # [2, 1, 8, 8]: at least one sample
    >>> output = images[:2]
    >>> for name, layer in layers.layers: output = layer(output)

    Without an example the layers of known models are found by their structure: `nn.Sequential`, `transformers`' GPT2LMHeadModel and
    LlamaForCausalLM, `torchvision`'s ResNet and VisionTransformer, and models with the same attribute names. `export` compares the
    layers with the model, in `train()` and `eval()` mode. Other models need a list of layers by hand: (name, module or function)
    pairs, each called with the result of the previous one.

    Returns the `Layers`, for `motley.export` and the layers= of `motley.train`. Raises `ExportError`, with the module and the line,
    for a forward that depends on values, and without an example for a model of unknown structure.
    """
    if not isinstance(model, torch.nn.Module):
        raise ExportError(f"a {type(model).__name__} was given instead of a model", "Pass a torch.nn.Module")
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
        f"motley.split does not know the structure of {type(model).__name__}",
        'Pass an input for a trace: motley.split(model, input). Or list the layers by hand: [("all", model)] is one layer, and '
                      'several are '
        f"(name, function) pairs, each called with the result of the previous one. {_blocks(model)}")


def _by_trace(model: torch.nn.Module, example: Any, forward: Optional[Call]) -> Layers:
    input = example[0] if isinstance(example, (tuple, list)) and example else example
    if isinstance(input, Mapping):
        check_names(list(input))
    if not all(isinstance(tensor, torch.Tensor) and tensor.dim() > 0 and tensor.size(0) > 0 for tensor in by_name(input).values()):
        raise ExportError("the example is not a tensor of samples",
                          "Pass an input with a first dimension of samples, or (input, target); several inputs are a dictionary "
                          "of tensors by name")
    whole = whole_model(model, forward)
    traced = whole.taking(input)
    with guarded("the model cannot be read", _INTERNAL_ERROR):
        names = Names(whole)
    with contextlib.ExitStack() as held:
        held.enter_context(as_float32(names.state.values()))
        names.check()
        held.enter_context(preserved_state([model]))
        held.enter_context(preserved_generators())
        held.enter_context(experts.computed_for_all_tokens([model]))
        stack = held.enter_context(ModuleStack(names.modules))
        tracer = WholeTracer(traced, names, stack)
        model.train()
        train = _program(model, tracer, input, forward is not None)
        model.eval()
        evaluate = _program(model, tracer, input, forward is not None)
        whole = whole._replace(notices=_unread(model, traced, tracer, input))
        with guarded("the model cannot be cut", _INTERNAL_ERROR):
            segments = divide(model, train, evaluate)
    if type(model) is torch.nn.Sequential and forward is None:
        modules = sequential.layers(model)
        if len(modules) >= len(segments):
            return whole._replace(layers=list(modules))
    if len(segments) == 1:
        if forward is None:
            (name, call), = traced.layers
            whole = whole._replace(layers=[(name, lambda given: outputs.main(call(given)))])
        return whole._replace(notices=(*whole.notices, f"{type(model).__name__} is a single layer, since its trace cannot be cut: it is trained "
                                       "on one machine, or by replicas. A list of layers by hand may divide it",))
    return whole._replace(layers=[(segment.name, segment) for segment in segments], traced=True)


def _program(model: torch.nn.Module, tracer: WholeTracer, input: Input, exact: bool) -> Program:
    """Traces without values, which would be the activations of the whole model; with values if a module depends on them."""
    try:
        with preserved_attributes(model):
            return tracer.program(each(without_values, input), exact)
    except ExportError:
        try:
            return tracer.program(input, exact)
        except ExportError as error:
            own = isinstance(error, DataDependent) or error.__cause__ is not None  # perhaps an error of the model without a trace
            if own and not any(isinstance(tensor, Virtual) for tensor in (*model.parameters(), *model.buffers())):
                tracer.check_call(input)
            raise


def _unread(model: torch.nn.Module, traced: Layers, tracer: WholeTracer, input: Input) -> Tuple[str, ...]:
    """Notices about inputs by name of which no operation uses the values. Refuses those that a model does not use in any way."""
    names = [name for name in input if name not in tracer.read] if isinstance(input, Mapping) else []
    if not names:
        return ()
    (_, call), = traced.layers
    seen = set()
    for training in (True, False):
        model.train(training)
        with preserved_attributes(model, unread.Watched):
            uses = unread.used(call, take(input, [0, 0]), names)
        if uses is None:
            return ()
        seen |= uses
    unused = [name for name in names if name not in seen]
    if unused and traced.by != "forward":
        raise unread.refusal(model, unused, input)
    what = "forward=" if traced.by == "forward" else type(model).__name__
    found = unread.notice(unused, what), unread.notice([name for name in names if name in seen], what, sizes_alone=True)
    return tuple(text for text in found if text)


_INTERNAL_ERROR = "This is an internal error of Motley; a list of layers by hand avoids it"


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
        return "Divide its forward, from input to output, into functions."
    named = ", ".join(f"model.{path} ({len(module)} × {type(next(iter(module))).__name__})" if path else f"its {len(module)} parts"
                      for path, module in found[:4])
    return (f"Its repeated parts are {named}: use a layer for each, and functions before, between and after them for the other "
            "operations of its forward, such as embeddings, positions, masks, further arguments of parts, norms and the head")
