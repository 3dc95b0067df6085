"""The layers of a model: names, callables, and the names of their tensors in the model's state_dict."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import torch

from . import weights
from .errors import ExportError
from .half_precision import HALF_TYPES
from .named import Input, called_with, check_takes
from .virtual import address

Call = Callable[[Any], Any]

_TO_FLOAT32 = ("Convert the trained parameters, for p in model.parameters(): p.data = p.data.float() if p.requires_grad else p.data, "
               "or the whole model with .float()")


class Layers(NamedTuple):
    """Named layers, each called with the result of the previous one."""

    layers: List[Tuple[str, Call]]
    roots: List[Tuple[str, torch.nn.Module]]
    """Modules that own all parameters, with their prefixes in the state_dict."""
    whole: Optional[Call] = None
    """The call of the whole model, whose result the layers give in sequence."""
    model: Optional[torch.nn.Module] = None
    by: str = "model"
    """The source of `whole`: "split", "model" or "forward"."""
    traced: bool = False
    """Whether the layers were found by a trace of the whole model."""
    notices: Tuple[str, ...] = ()
    """Notices for the user about the layers."""

    def taking(self, input: Input) -> "Layers":
        """The same, called with such inputs: a module gets named ones as its keyword arguments, a function their dictionary."""
        (name, first), *others = self.layers
        check_takes(first, input)
        return self._replace(layers=[(name, called_with(first, input)), *others], whole=called_with(self.whole, input))


def as_layers(layers: Union[Layers, Iterable[Tuple[str, Call]]], model: Optional[torch.nn.Module] = None,
              forward: Optional[Call] = None) -> Layers:
    """Converts the `layers` argument of `export`. With `model`, tensors are named as in its state_dict."""
    if forward is not None and not callable(forward):
        raise ExportError(f"forward= is a {type(forward).__name__}", "Pass a function of the input that calls the model")
    described = _described(layers, model)
    return described if forward is None else described._replace(whole=forward, by="forward")


def _described(layers: Union[Layers, Iterable[Tuple[str, Call]]], model: Optional[torch.nn.Module]) -> Layers:
    if model is not None and not isinstance(model, torch.nn.Module):
        raise ExportError(f"model= is a {type(model).__name__}", "Pass the torch.nn.Module whose state_dict names the parameters")
    if isinstance(layers, Layers):
        return layers if model is None or model is layers.model else _as_part_of(layers, model)
    if isinstance(layers, torch.nn.Module):
        raise ExportError("a module was given instead of a list of layers",
                          "Pass motley.split(model), or a list of (name, module)")
    pairs: List[Tuple[str, Call]] = []
    if not isinstance(layers, Iterable):
        raise ExportError(f"the layers are a {type(layers).__name__}", "Pass motley.split(model), or a list of (name, module)")
    for k, pair in enumerate(layers):
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) and callable(pair[1])):
            raise ExportError(f"layer {k} is not a pair of a name and a module", "Pass a list of (name, module)")
        pairs.append(pair)
    if not pairs:
        raise ExportError("the list of layers is empty", "Pass a list of (name, module)")
    if model is not None:
        return Layers(pairs, [("", model)], model, model)
    roots: List[Tuple[str, torch.nn.Module]] = []
    for name, call in pairs:
        if isinstance(call, torch.nn.Module):
            roots.append((name, call))
        else:
            roots += [(f"{name}.{key}", module) for key, module in _owned(call)]
    return Layers(pairs, roots)


def _as_part_of(layers: Layers, model: torch.nn.Module) -> Layers:
    """Layers of a submodule of `model`, such as the model in an adapter's wrapper, with tensors named as in the state_dict of
    `model`."""
    parts = {id(module) for module in model.modules()}
    if any(id(root) not in parts for _, root in layers.roots):
        raise ExportError(f"the layers belong to another {type(layers.model).__name__} than model=",
                          "Split the model that you pass")
    return layers._replace(roots=[("", model)], model=model)


def _owned(call: Call) -> List[Tuple[str, torch.nn.Module]]:
    """The modules in a function's closure, of a method's instance, or in an object's attributes."""
    found: List[Tuple[str, Any]] = []
    owner = getattr(call, "__self__", None)
    if owner is not None:
        found.append(("self", owner))
    if getattr(call, "__closure__", None):
        found += [(name, cell.cell_contents) for name, cell in zip(call.__code__.co_freevars, call.__closure__)]
    if hasattr(call, "func") and hasattr(call, "args"):  # functools.partial
        found += [("func", call.func)] + [(f"args.{k}", value) for k, value in enumerate(call.args)]
    if hasattr(call, "__dict__"):
        found += list(vars(call).items())
    return [(name, value) for name, value in found if isinstance(value, torch.nn.Module)]


def is_statistic(name: str) -> bool:
    """Whether training changes a tensor of this name without a gradient."""
    return name.rpartition(".")[2] in ("running_mean", "running_var")


class Names:
    """The names of a model's tensors and modules."""

    def __init__(self, layers: Layers):
        self.of: Dict[int, str] = {}  # [id of a tensor] its first name
        self.aliases: Dict[str, str] = {}  # [further name] first name
        self.state: Dict[str, torch.Tensor] = {}  # the state_dict's tensors by first names
        self.modules: Dict[int, str] = {}  # [id of a module] its path
        self._roots = [root for _, root in layers.roots]
        self._elsewhere: List[Tuple[str, torch.Tensor]] = []  # tensors outside the state_dict that are not on the CPU
        for prefix, root in layers.roots:
            dot = prefix + "." if prefix else ""
            for path, module in root.named_modules():
                self.modules.setdefault(id(module), (dot + path).rstrip(".") or type(root).__name__)
            listed = set(root.state_dict(keep_vars=True))
            tensors = _all_tensors(root)
            for name, tensor in tensors:
                if name in listed:
                    self._add(dot + name, tensor)
                else:
                    self.of.setdefault(id(tensor), f"{dot}{name} (not in the state_dict)")
                    if tensor.device.type != "cpu":
                        self._elsewhere.append((dot + name, tensor))

    def check(self) -> None:
        """Refuses tensors that packages do not support, before any computation."""
        self._check_modules()
        self.memory()
        if not any(tensor.requires_grad for tensor in self.state.values()):
            raise ExportError("the model has no parameter that requires a gradient", "Call requires_grad_() on the part to train"
                              if self.state else "If the layers are functions that use modules, pass model=, the module that "
                              "owns their parameters")
        for name, tensor in self._elsewhere:
            raise ExportError(f"{name} is on {tensor.device}", "Export from the CPU: model.cpu()")
        for name, tensor in self.state.items():
            if tensor.device.type != "cpu":
                raise ExportError(f"{name} is on {tensor.device}", "Export from the CPU: model.cpu()")
            if not weights.holds(tensor.dtype) and not isinstance(tensor, torch.nn.Parameter):
                raise ExportError(f"the buffer {name} is {str(tensor.dtype)[6:]}, which packages do not support",
                                  "Register it with persistent=False, or store real and imaginary "
                                  "parts", name.rpartition(".")[0] or None)
            if tensor.dtype == torch.float32 or tensor.dtype in HALF_TYPES and not tensor.requires_grad:
                continue
            if (tensor.is_floating_point() or tensor.is_complex()) and isinstance(tensor, torch.nn.Parameter):
                what = "packages train float32 parameters" if tensor.requires_grad else "packages support frozen parameters in float32, float16 and bfloat16"
                raise ExportError(f"the parameter {name} is {str(tensor.dtype)[6:]}; {what}", "Compute with real and imaginary parts"
                                  if tensor.is_complex() else _TO_FLOAT32 if tensor.requires_grad and tensor.dtype in HALF_TYPES
                                  else "Convert the model with .float() before the export", name.rpartition(".")[0] or None)

    def memory(self) -> Dict[Any, str]:
        """[address of the first element] the name of a trained parameter."""
        found: Dict[Any, str] = {}
        for name, tensor in self.state.items():
            if not tensor.requires_grad or tensor.device.type != "cpu" or tensor.numel() == 0:
                continue
            if address(tensor) in found:
                raise ExportError(f"{found[address(tensor)]} and {name} are different parameters in the same memory",
                                  "Tie them as one parameter, e.g. head.weight = embedding.weight, or clone one")
            found[address(tensor)] = name
        return found

    def _check_modules(self) -> None:
        for root in self._roots:
            for module in root.modules():
                path = self.modules[id(module)]
                if isinstance(module, torch.jit.ScriptModule):
                    raise ExportError(f"{path} is TorchScript, whose operations vary between calls",
                                      "Pass the Python module that it was compiled from", path)
                if type(module).__name__ in ("OptimizedModule", "DataParallel", "DistributedDataParallel"):
                    raise ExportError(f"{path} is a {type(module).__name__}, which wraps the model",
                                      "Pass the module inside it", path)
                if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.max_norm is not None:
                    raise ExportError(f"an embedding with max_norm writes to {path}.weight in each forward",
                                      "Leave max_norm out", path)
                for key, parameter in module._parameters.items():
                    if torch.nn.parameter.is_lazy(parameter):
                        raise ExportError(f"the parameter {key} has no shape yet",
                                          "Call the model once to initialize its lazy modules", path)
                    if parameter is not None and (parameter._backward_hooks or getattr(parameter, "_post_accumulate_grad_hooks", None)):
                        raise ExportError(f"the parameter {key} has a hook, which would not run in the training of the package",
                                          "Remove it; modify the gradient in the layer's forward instead", path)

    def _add(self, name: str, tensor: torch.Tensor) -> None:
        first = self.of.get(id(tensor))
        if first is None:
            if name in self.state:
                raise ExportError(f"two tensors have the name {name}", "Use different names for the layers, or pass model=")
            self.of[id(tensor)] = name
            self.state[name] = tensor
        elif first != name:
            self.aliases[name] = first


def _all_tensors(root: torch.nn.Module) -> List[Tuple[str, torch.Tensor]]:
    """All parameters and buffers, with each of their names."""
    found: List[Tuple[str, torch.Tensor]] = []
    for path, module in _every_module(root, ""):
        for own in (module._parameters, module._buffers):
            found += [(path + name, tensor) for name, tensor in own.items() if tensor is not None]
    return found


def _every_module(module: torch.nn.Module, path: str) -> Iterable[Tuple[str, torch.nn.Module]]:
    yield path, module
    for name, child in module._modules.items():
        if child is not None:
            yield from _every_module(child, f"{path}{name}.")
