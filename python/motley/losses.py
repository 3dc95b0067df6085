"""Losses as functions (output, target) -> (sum, count), and what is known of them.

Motley divides the sum of a step by its count, so micro-batches may have different numbers of terms.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F

from .errors import ExportError

Terms = Callable[[torch.Tensor, torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]

_OWN = "Give a function (output, target) -> (sum, count)"


class Loss(NamedTuple):
    """A loss: `terms` gives sum and count, `correct`, where there is one, how much of the count was predicted right."""

    terms: Terms
    correct: Optional[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]
    ignored: Optional[int]
    classes: bool
    """Whether the targets are numbers of classes."""
    numbers: bool = False
    """Whether it compares the output with numbers of its shape."""

    @property
    def is_known(self) -> bool:
        """Whether it is one of PyTorch's, and so a sum over the samples."""
        return self.classes or self.numbers


class _Elementwise(NamedTuple):
    """A loss whose terms are those of the output's elements."""

    function: Callable[..., torch.Tensor]
    settings: Tuple[str, ...] = ()
    """Attributes of the module that its function takes."""
    weights: Tuple[str, ...] = ()
    """The same of tensors, where they are set."""


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

_OF_CLASSES = {torch.nn.CrossEntropyLoss: F.cross_entropy, torch.nn.NLLLoss: F.nll_loss}


def understand(loss: Any) -> Loss:
    """What `export` was given as its loss."""
    for module, function in _OF_CLASSES.items():
        if loss is function:
            return _of_classes(function, {}, -100)
        if isinstance(loss, module):
            if _is_changed(loss, module):
                return _own(loss, module)
            _reduced_by(loss, "mean")
            smoothing = getattr(loss, "label_smoothing", 0.0)
            return _of_classes(function, {"label_smoothing": smoothing} if smoothing else {}, loss.ignore_index,
                               _constant(loss.weight))
    for module, known in _ELEMENTWISE.items():
        if loss is known.function:
            return _elementwise(known.function, {})
        if isinstance(loss, module):
            if _is_changed(loss, module):
                return _own(loss, module)
            by_sample = module is torch.nn.KLDivLoss and loss.reduction == "batchmean"
            if not by_sample:
                _reduced_by(loss, "mean")
            given = {name: _constant(getattr(loss, name)) for name in known.settings + known.weights if getattr(loss, name, None) is not None}
            for name in known.weights:
                if name in given and given[name].dim() > 1 and given[name].size(0) != 1:
                    raise ExportError(f"the {name} of {module.__name__} has the shape {tuple(given[name].shape)}, whose first dimension would be "
                                      "that of the samples", f"{_OWN}, and put weights of samples into the target")
            return _elementwise(known.function, given, by_sample)
    if isinstance(loss, torch.nn.modules.loss._Loss):
        raise ExportError(f"the loss {type(loss).__name__} is not known", f"{_OWN}, e.g. with the loss's reduction='sum'")
    if isinstance(getattr(loss, "__self__", None), torch.nn.Module) and loss.__name__ in ("training_step", "validation_step"):
        raise ExportError(f"{loss.__name__} takes a batch, and a loss of Motley's what the model gave and the target",
                          "Give the model's layers and its loss apart, as in motley.train(model.net, nn.CrossEntropyLoss(), data)")
    if callable(loss):
        return Loss(loss, None, None, False)
    raise ExportError(f"{type(loss).__name__} is no loss", "Give nn.CrossEntropyLoss(), nn.MSELoss() or a function (output, target) -> (sum, count)")


def _constant(value: Any) -> Any:
    """Weights as packages hold them, whatever they were computed in."""
    return value.detach().float() if isinstance(value, torch.Tensor) else value


def _is_changed(loss: torch.nn.Module, module: type) -> bool:
    """Whether it only begins as a loss that is known: another forward, of its class or its own, another call, or hooks."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return (any(getattr(type(loss), name) is not getattr(module, name) for name in ("forward", "__call__")) or "forward" in vars(loss)
            or any(getattr(loss, name, None) for name in hooks))


def _own(loss: torch.nn.Module, module: type) -> Loss:
    """Such a one as a function."""
    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        given = loss(output, target)
        if not (isinstance(given, tuple) and len(given) == 2):
            how = f"than the {module.__name__} that it derives from" if type(loss) is not module else "than PyTorch's: it has hooks, or a forward of its own"
            raise ExportError(f"{type(loss).__name__} computes otherwise {how}", _OWN)
        return given
    return Loss(terms, None, None, False)


def _reduced_by(loss: Any, reduction: str) -> None:
    if loss.reduction != reduction:
        raise ExportError(f"the loss has reduction='{loss.reduction}'", "Motley divides the sum by the count, as 'mean' does; "
                          "use that, or give a function (output, target) -> (sum, count)")


def _tensor(output: Any) -> torch.Tensor:
    if not isinstance(output, torch.Tensor):
        has_logits = isinstance(getattr(output, "logits", None), torch.Tensor)
        raise ExportError(f"the last layer returns a {type(output).__name__}, and the loss takes a tensor", "Return the tensor"
                          + (', as ("all", lambda x: model(x).logits) does' if has_logits else ", or give a loss of your own that takes what is returned"))
    return output


def _elementwise(function: Callable[..., torch.Tensor], given: Dict[str, Any], by_sample: bool = False) -> Loss:
    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        output = _tensor(output)
        if output.shape != target.shape:
            shaped = f", here target.reshape{('-1',) + tuple(output.shape[1:])}".replace("'", "") if output.numel() == target.numel() else ""
            raise ExportError(f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}",
                              f"Give targets in the shape of the output{shaped}")
        if not target.is_floating_point():
            raise ExportError(f"the loss compares numbers, and the target is {str(target.dtype)[6:]}", "Give target.float()")
        count = output.size(0) if by_sample else output.numel()
        return function(output, target, reduction="sum", **given), torch.full((), count, dtype=torch.int64)
    return Loss(terms, None, None, False, numbers=True)


def counted(loss: Loss, target: torch.Tensor) -> Optional[torch.Tensor]:
    """[place in a sample's target] whether no sample ignores it; nothing where none or all are ignored."""
    if loss.ignored is None or target.is_floating_point() or target.dim() < 2:
        return None
    places = (target != loss.ignored).all(0)
    return places if bool(places.any()) and not bool(places.all()) else None


def classes_last(output: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether the classes are the output's last dimension, as language models give them, and not its second."""
    if target.dim() != output.dim() - 1 or output.dim() < 3:
        return False
    return output.shape[:-1] == target.shape and output.shape[:1] + output.shape[2:] != target.shape


def _refuse_both(output: torch.Tensor, target: torch.Tensor) -> None:
    """Refuses integer targets that fit where the classes are the second dimension, and where they are the last."""
    if target.is_floating_point() or output.dim() < 3 or not output.shape[:-1] == target.shape == output.shape[:1] + output.shape[2:]:
        return
    raise ExportError(f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}, so that the classes may be its second dimension, "
                      "as PyTorch has them, or its last, as language models do", "Say which by a function of your own, (output, target) -> "
                      "(F.cross_entropy(output, target, reduction='sum'), (target != -100).sum()) where they are second; the same of "
                      "output.flatten(0, -2) and target.flatten() where they are last, or give a context of another length")


def class_count(output: torch.Tensor, target: torch.Tensor) -> Optional[int]:
    """How many classes such an output has, where the target is of classes."""
    if output.dim() != target.dim() + 1:
        return None
    return output.size(-1) if classes_last(output, target) else output.size(1)


def _of_classes(function: Callable[..., torch.Tensor], given: Dict[str, Any], ignored: int, weight: Optional[torch.Tensor] = None) -> Loss:
    def flat(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        if classes_last(output, target):
            return output.reshape(-1, output.size(-1)), target.reshape(-1)
        return output, target

    def weight_of(target: torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        """The sum of the weights of the classes that are at some places of the target."""
        assert weight is not None
        counted = some.reshape(-1)
        return (weight.index_select(0, target.reshape(-1) * counted) * counted).sum()

    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        _refuse_both(_tensor(output), target)
        output, target = flat(output, target)
        _check_classes(output, target)
        if weight is not None and weight.numel() != output.size(1):
            raise ExportError(f"the loss has weights of {weight.numel()} classes, and the output {output.size(1)}", "Give a weight for each class")
        options = given if weight is None else {**given, "weight": weight}
        if target.is_floating_point():
            return (function(output, target, reduction="sum", **options),
                    torch.full((), target.numel() // target.size(1), dtype=torch.int64))
        total = function(output, target, ignore_index=ignored, reduction="sum", **options)
        if weight is None:
            return total, (target != ignored).sum()
        return total, weight_of(target, target != ignored)  # as PyTorch's mean divides

    def correct(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        output, target = flat(output, target)
        right = (output.argmax(1) == target) & (target != ignored)
        if weight is None:
            return right.sum()
        return weight_of(target, right)

    return Loss(terms, correct, ignored, True)


def _check_classes(output: torch.Tensor, target: torch.Tensor) -> None:
    shapes = f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}"
    if target.is_floating_point():
        if target.shape != output.shape:
            raise ExportError(f"{shapes}, of {str(target.dtype)[6:]}", "Give target.long(), the numbers of classes, or probabilities in the shape of the output")
    elif output.dim() < 2 or target.shape != output.shape[:1] + output.shape[2:]:
        remedy = "Give a class for each of the output's rows: the output's shape without the dimension of classes, its second or last"
        if target.shape == output.shape:
            remedy = "Give target.argmax(1), the numbers of classes, or target.float() as their probabilities"
        raise ExportError(shapes, remedy)
