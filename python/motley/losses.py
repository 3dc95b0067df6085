"""Losses as functions (output, target) -> (sum, count), and what is known of them.

Motley divides the sum of a step by its count, so micro-batches may have different numbers of terms.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F

from .errors import ExportError

Terms = Callable[[torch.Tensor, torch.Tensor], Tuple[torch.Tensor, torch.Tensor]]


class Loss(NamedTuple):
    """A loss: `terms` gives sum and count, `correct`, where there is one, how many were predicted right."""

    terms: Terms
    correct: Optional[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]
    ignored: Optional[int]
    classes: bool
    """Whether the targets are numbers of classes."""


def understand(loss: Any) -> Loss:
    """What `export` was given as its loss."""
    if isinstance(loss, torch.nn.CrossEntropyLoss):
        if loss.weight is not None:
            raise ExportError("CrossEntropyLoss has weights of classes", "Give a function (output, target) -> (sum, count)")
        _mean_only(loss.reduction)
        return _cross_entropy(loss.ignore_index, getattr(loss, "label_smoothing", 0.0))
    if loss is F.cross_entropy:
        return _cross_entropy(-100, 0.0)
    for module, function in ((torch.nn.MSELoss, F.mse_loss), (torch.nn.L1Loss, F.l1_loss), (torch.nn.SmoothL1Loss, F.smooth_l1_loss),
                             (torch.nn.HuberLoss, F.huber_loss), (torch.nn.BCEWithLogitsLoss, F.binary_cross_entropy_with_logits)):
        if isinstance(loss, module):
            if getattr(loss, "weight", None) is not None or getattr(loss, "pos_weight", None) is not None:
                raise ExportError(f"{module.__name__} has weights", "Give a function (output, target) -> (sum, count)")
            _mean_only(loss.reduction)
        if isinstance(loss, module) or loss is function:
            bends = {key: getattr(loss, key) for key in ("beta", "delta") if hasattr(loss, key)}  # where squares become distances
            return Loss(_elementwise(function, bends), None, None, False)
    if isinstance(loss, torch.nn.modules.loss._Loss):
        raise ExportError(f"the loss {type(loss).__name__} is not known",
                          "Give a function (output, target) -> (sum, count), e.g. with the loss's reduction='sum'")
    if callable(loss):
        return Loss(loss, None, None, False)
    raise ExportError(f"{type(loss).__name__} is no loss", "Give nn.CrossEntropyLoss(), nn.MSELoss() or a function "
                      "(output, target) -> (sum, count)")


def _mean_only(reduction: str) -> None:
    if reduction != "mean":
        raise ExportError(f"the loss has reduction='{reduction}'", "Motley divides the sum by the count, as 'mean' does; "
                          "use that, or give a function (output, target) -> (sum, count)")


def _elementwise(function: Callable[..., torch.Tensor], options: Dict[str, float]) -> Terms:
    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        if not target.is_floating_point():
            raise ExportError(f"the targets are {str(target.dtype)[6:]}, and {function.__name__} is of floats", "Give them as floats: targets.float()")
        if not isinstance(output, torch.Tensor):
            raise ExportError(f"the last layer returns a {type(output).__name__}, and {function.__name__} takes a tensor",
                              "Return the tensor that the loss is of, such as output.logits")
        if output.shape != target.shape:
            raise ExportError(f"the output has shape {tuple(output.shape)} and the target {tuple(target.shape)}",
                              "Give targets in the shape of the output")
        return function(output, target, reduction="sum", **options), torch.full((), output.numel(), dtype=torch.int64)
    return terms


def classes_last(output: torch.Tensor, target: torch.Tensor) -> bool:
    """Whether the classes are the output's last dimension, as language models give them, and not its second."""
    if target.dim() != output.dim() - 1 or output.dim() < 3:
        return False
    return output.shape[:-1] == target.shape and output.shape[:1] + output.shape[2:] != target.shape


def _cross_entropy(ignored: int, smoothing: float) -> Loss:
    def flat(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        if not isinstance(output, torch.Tensor):
            raise ExportError(f"the last layer returns a {type(output).__name__}, and the cross entropy takes a tensor",
                              "Return the tensor of scores, such as output.logits")
        if target.is_floating_point() and target.shape != output.shape:
            raise ExportError(f"the targets are floats of shape {tuple(target.shape)}, and the output has shape {tuple(output.shape)}",
                              "Give numbers of classes as int64: targets.long(); or probabilities in the shape of the output")
        if classes_last(output, target):
            return output.reshape(-1, output.size(-1)), target.reshape(-1)
        return output, target

    def terms(output: torch.Tensor, target: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        output, target = flat(output, target)
        total = F.cross_entropy(output, target, ignore_index=ignored, reduction="sum", label_smoothing=smoothing)
        if target.is_floating_point():
            return total, torch.full((), target.numel() // target.size(1), dtype=torch.int64)
        return total, (target != ignored).sum()

    def correct(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        output, target = flat(output, target)
        return ((output.argmax(1) == target) & (target != ignored)).sum()

    return Loss(terms, correct, ignored, True)
