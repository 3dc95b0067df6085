"""Losses as functions (output, target) -> (sum, count), with their properties.

Motley divides the sum of a step by its count, so micro-batches may have different numbers of terms.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F

from .errors import ExportError

Terms = Callable[[torch.Tensor, torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]

_CUSTOM = "Pass a function (output, target) -> (sum, count)"


class Loss(NamedTuple):
    """A loss. `terms` returns sum and count, and `correct`, if available, the part of the count that was predicted correctly."""

    terms: Terms
    correct: Optional[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]
    ignored: Optional[int]
    classes: bool
    """Whether the targets are class indices or probabilities."""
    numbers: bool = False
    """Whether the targets are numbers in the shape of the output."""
    class_count: Optional[int] = None
    """The classes that the outputs must have, if it is for a certain number."""

    @property
    def is_known(self) -> bool:
        """Whether it is a loss of PyTorch, whose terms are sums over the samples."""
        return self.classes or self.numbers


class _Elementwise(NamedTuple):
    """A loss with one term per element of the output."""

    function: Callable[..., torch.Tensor]
    settings: Tuple[str, ...] = ()
    """Attributes of the module that are arguments of its function."""
    weights: Tuple[str, ...] = ()
    """Such attributes that are optional tensors."""


_ELEMENTWISE: Dict[type, _Elementwise] = {
    torch.nn.MSELoss: _Elementwise(F.mse_loss),
    torch.nn.L1Loss: _Elementwise(F.l1_loss),
    torch.nn.SmoothL1Loss: _Elementwise(F.smooth_l1_loss, ("beta",)),
    torch.nn.HuberLoss: _Elementwise(F.huber_loss, ("delta",)),
    torch.nn.BCELoss: _Elementwise(F.binary_cross_entropy, (), ("weight",)),
    torch.nn.BCEWithLogitsLoss: _Elementwise(F.binary_cross_entropy_with_logits, (), ("weight", "pos_weight")),
    torch.nn.KLDivLoss: _Elementwise(F.kl_div, ("log_target",)),
    torch.nn.PoissonNLLLoss: _Elementwise(F.poisson_nll_loss, ("log_input", "full", "eps")),
    torch.nn.SoftMarginLoss: _Elementwise(F.soft_margin_loss),
}

_CLASSIFICATION = {torch.nn.CrossEntropyLoss: F.cross_entropy, torch.nn.NLLLoss: F.nll_loss}


def parse(loss: Any) -> Loss:
    """The loss that was passed to `export`."""
    for module, function in _CLASSIFICATION.items():
        if loss is function:
            return _classification(function, {}, -100)
        if isinstance(loss, module):
            if _is_overridden(loss, module):
                return _custom(loss, module)
            _check_reduction(loss, "mean")
            smoothing = getattr(loss, "label_smoothing", 0.0)
            return _classification(function, {"label_smoothing": smoothing} if smoothing else {}, loss.ignore_index,
                                   _constant(loss.weight))
    for module, known in _ELEMENTWISE.items():
        if loss is known.function:
            return _elementwise(known.function, {})
        if isinstance(loss, module):
            if _is_overridden(loss, module):
                return _custom(loss, module)
            by_sample = module is torch.nn.KLDivLoss and loss.reduction == "batchmean"
            if not by_sample:
                _check_reduction(loss, "mean")
            given = {name: _constant(getattr(loss, name)) for name in known.settings + known.weights if getattr(loss, name, None) is not None}
            for name in known.weights:
                if name in given and given[name].dim() > 1 and given[name].size(0) != 1:
                    raise ExportError(f"the {name} of {module.__name__} has the shape {tuple(given[name].shape)}, whose first dimension would be "
                                      "that of the samples", f"{_CUSTOM}, and store weights of samples in the target")
            return _elementwise(known.function, given, by_sample)
    if isinstance(loss, torch.nn.modules.loss._Loss):
        raise ExportError(f"unknown loss {type(loss).__name__}", f"{_CUSTOM}, e.g. one that calls it with reduction='sum'")
    if isinstance(getattr(loss, "__self__", None), torch.nn.Module) and loss.__name__ in ("training_step", "validation_step"):
        raise ExportError(f"{loss.__name__} takes a batch, but a loss takes the model's output and the target",
                          "Pass the model and the loss separately, as in motley.train(model.net, nn.CrossEntropyLoss(), data)")
    if callable(loss):
        return Loss(loss, None, None, False)
    raise ExportError(f"{type(loss).__name__} is not a loss",
                      "Pass nn.CrossEntropyLoss(), nn.MSELoss() or a function (output, target) -> (sum, count)")


def _constant(value: Any) -> Any:
    """Weights of a loss in float32, the type in packages."""
    return value.detach().float() if isinstance(value, torch.Tensor) else value


def _is_overridden(loss: torch.nn.Module, module: type) -> bool:
    """Whether a known loss has another `forward` or `__call__`, in a derived class or the instance, or hooks."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return (any(getattr(type(loss), name) is not getattr(module, name) for name in ("forward", "__call__")) or "forward" in vars(loss)
            or any(getattr(loss, name, None) for name in hooks))


def _custom(loss: torch.nn.Module, module: type) -> Loss:
    """An overridden loss, as a custom one."""
    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        given = loss(output, target)
        if not (isinstance(given, tuple) and len(given) == 2):
            how = (f"differs from its base class {module.__name__}" if type(loss) is not module
                   else "differs from PyTorch's: it has hooks or its own forward")
            raise ExportError(f"{type(loss).__name__} {how}, and does not return (sum, count)", _CUSTOM)
        return given
    return Loss(terms, None, None, False)


def _check_reduction(loss: Any, reduction: str) -> None:
    if loss.reduction != reduction:
        raise ExportError(f"the loss has reduction='{loss.reduction}'", "Motley divides the sum by the count, like 'mean': "
                          "use that, or pass a function (output, target) -> (sum, count)")


def _tensor(output: Any) -> torch.Tensor:
    if not isinstance(output, torch.Tensor):
        has_logits = isinstance(getattr(output, "logits", None), torch.Tensor)
        raise ExportError(f"the last layer returns a {type(output).__name__}, but the loss takes a tensor", "Return the tensor"
                          + (', e.g. ("all", lambda x: model(x).logits)' if has_logits else ", or pass a custom loss for the "
                             "returned value"))
    return output


def _elementwise(function: Callable[..., torch.Tensor], given: Dict[str, Any], by_sample: bool = False) -> Loss:
    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        output = _tensor(output)
        if output.shape != target.shape:
            shaped = f", e.g. target.reshape{('-1',) + tuple(output.shape[1:])}".replace("'", "") if output.numel() == target.numel() else ""
            raise ExportError(f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}",
                              f"Pass targets in the shape of the output{shaped}")
        if not target.is_floating_point():
            raise ExportError(f"the loss compares numbers, but the target is {str(target.dtype)[6:]}", "Pass target.float()")
        count = output.size(0) if by_sample else output.numel()
        return function(output, target, reduction="sum", **given), torch.full((), count, dtype=torch.int64)
    return Loss(terms, None, None, False, numbers=True)


def counted_positions(loss: Loss, target: torch.Tensor) -> Optional[torch.Tensor]:
    """[position in a sample's target] whether no sample ignores it; None if no position is ignored, or all are."""
    if loss.ignored is None or target.is_floating_point() or target.dim() < 2:
        return None
    positions = (target != loss.ignored).all(0)
    return positions if bool(positions.any()) and not bool(positions.all()) else None


def classes_last(output: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether the classes are the output's last dimension, as in language models, and not its second."""
    if target.dim() != output.dim() - 1 or output.dim() < 3:
        return False
    return output.shape[:-1] == target.shape and output.shape[:1] + output.shape[2:] != target.shape


def _refuse_ambiguous(output: torch.Tensor, target: torch.Tensor) -> None:
    """Refuses integer targets whose shape fits both with classes in the second dimension and with classes in the last."""
    if target.is_floating_point() or output.dim() < 3 or not output.shape[:-1] == target.shape == output.shape[:1] + output.shape[2:]:
        return
    raise ExportError(f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}: the classes may be the "
                      "output's second dimension, as in PyTorch, or its last, as in language models", "Pass a custom loss, "
                      "(output, target) -> (F.cross_entropy(output, target, reduction='sum'), (target != -100).sum()) if they "
                      "are second, and the same with output.flatten(0, -2) and target.flatten() if they are last, or use another "
                      "context length")


def class_count(output: torch.Tensor, target: torch.Tensor) -> Optional[int]:
    """The number of classes in an output, if the target's shape is that of class indices."""
    if output.dim() != target.dim() + 1:
        return None
    return output.size(-1) if classes_last(output, target) else output.size(1)


def compares_samples(few: int, with_few: Sequence[int], many: int, with_many: Sequence[int], layer: Optional[str] = None) -> ExportError:
    """The error for an output whose size for one sample depends on the number of samples."""
    return ExportError(f"the output has shape {tuple(with_few)} for {few} sample{'s' if few > 1 else ''} and {tuple(with_many)} for "
                       f"{many}: it compares samples with each other, as CLIP does, and micro-batches would change what is compared",
                       "Return scores that depend on one sample alone, in the shape [samples, ...]; forward= may return another output of the "
                       "model", layer)


def _classification(function: Callable[..., torch.Tensor], given: Dict[str, Any], ignored: int, weight: Optional[torch.Tensor] = None) -> Loss:
    def flat(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        if classes_last(output, target):
            return output.reshape(-1, output.size(-1)), target.reshape(-1)
        return output, target

    def weight_of(target: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        """The sum of the class weights at the positions `some` of the target."""
        assert weight is not None
        counted = some.reshape(-1)
        return (weight.index_select(0, target.reshape(-1) * counted) * counted).sum()

    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        _refuse_ambiguous(_tensor(output), target)
        output, target = flat(output, target)
        _check_classes(output, target)
        if weight is not None and weight.numel() != output.size(1):
            raise ExportError(f"the loss has weights of {weight.numel()} classes, but the output has {output.size(1)}",
                              "Pass one weight per class")
        options = given if weight is None else {**given, "weight": weight}
        if target.is_floating_point():
            return (function(output, target, reduction="sum", **options),
                    torch.full((), target.numel() // target.size(1), dtype=torch.int64))
        total = function(output, target, ignore_index=ignored, reduction="sum", **options)
        if weight is None:
            return total, (target != ignored).sum()
        return total, weight_of(target, target != ignored)  # the divisor of PyTorch's mean

    def correct(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        output, target = flat(output, target)
        right = (output.argmax(1) == target) & (target != ignored)
        if weight is None:
            return right.sum()
        return weight_of(target, right)

    return Loss(terms, correct, ignored, True, class_count=None if weight is None else weight.numel())


def _check_classes(output: torch.Tensor, target: torch.Tensor) -> None:
    shapes = f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}"
    if target.is_floating_point():
        if target.shape != output.shape:
            raise ExportError(f"{shapes}, of {str(target.dtype)[6:]}",
                              "Pass target.long(), class indices, or probabilities in the shape of the output")
    elif output.dim() < 2 or target.shape != output.shape[:1] + output.shape[2:]:
        remedy = "Pass one class per row of the output: its shape without the dimension of classes, the second or last"
        if target.shape == output.shape:
            remedy = "Pass target.argmax(1), class indices, or target.float(), probabilities"
        raise ExportError(shapes, remedy)
