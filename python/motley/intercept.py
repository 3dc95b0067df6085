"""Replaces the functions of PyTorch that draw random numbers, update running statistics or choose kernels by device.

While an `Intercept` is entered, dropout multiplies by `motley::dropout_mask`, batch normalization leaves the running
statistics unchanged and records its observations, and attention consists of products and a softmax. With a recorder, conversions
of tensor values to Python or NumPy are refused, since no operation would record them, and checks of them are skipped.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from . import value_checks
from .draws import Draws
from .errors import ExportError
from .record import Recorder


class Observed(NamedTuple):
    """A micro-batch's observation of the running statistic `tensor`."""

    tensor: torch.Tensor
    momentum: float
    value: torch.Tensor


class Intercept(TorchFunctionMode):
    """Entered after the recorder. With `reports_tracing`, PyTorch reports that it is tracing, so that libraries omit branches on
    values that only save time."""

    def __init__(self, recorder: Optional[Recorder] = None, draws: Optional[Draws] = None, reports_tracing: bool = False):
        super().__init__()
        self.observed: List[Observed] = []
        self.draws = draws if draws is not None else Draws(recorder)
        self._recorder = recorder
        self._reports_tracing = reports_tracing
        self.whole = False
        """Whether several layers run, each of which may use a normalization."""
        self._originals: Dict[str, Any] = {}
        self._value_checks = value_checks.ValueChecks(recorder)

    # While a mode handles a function, the function's body runs without the mode. Functions that `torch.nn.functional` calls
    # itself are therefore replaced in that module, and functions that models imported by name are replaced by the mode.

    def __enter__(self) -> "Intercept":
        for name in _BY_NAME:
            function = getattr(F, name, None)
            if function in _REPLACED:
                self._originals[name] = function
                setattr(F, name, functools.partial(_REPLACED[function], self))
        if _FAST_PATH is not None:
            self._fast_path = _FAST_PATH.get_fastpath_enabled()
            _FAST_PATH.set_fastpath_enabled(False)
        self._value_checks.__enter__()
        if self._reports_tracing:
            self._is_tracing = torch.jit.is_tracing
            torch.jit.is_tracing = lambda: True
        self.draws.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        self.draws.__exit__(*args)
        if self._reports_tracing:
            torch.jit.is_tracing = self._is_tracing
        self._value_checks.__exit__(*args)
        if _FAST_PATH is not None:
            _FAST_PATH.set_fastpath_enabled(self._fast_path)
        for name, function in self._originals.items():
            setattr(F, name, function)

    def __torch_function__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[dict] = None) -> Any:
        kwargs = kwargs or {}
        replaced = _REPLACED.get(func)
        if func in _VALUE_ACCESS and self._recorder is not None and self._recorder.varies(args[0]):
            raise self._fail(f"Tensor.{func.__name__} converts the values of a tensor to Python",
                             "Use only PyTorch's operations; replace branches by torch.where or a mask")
        if func in value_checks.FUNCTIONS and self._recorder is not None:
            return self._value_checks.run(func, args, kwargs)
        if replaced is None:
            return func(*args, **kwargs)
        return replaced(self, *args, **kwargs)

    def _dropout(self, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0:
            return input
        mask = self.draws.mask(input, p)
        return input.mul_(mask) if inplace else input * mask

    def _torch_dropout(self, input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
        return self._dropout(input, p, train)

    def _channel_dropout(self, input: torch.Tensor, p: float = 0.5, training: bool = True,
                         inplace: bool = False) -> torch.Tensor:
        if not training or p == 0:
            return input
        like = input
        for dim in range(2, input.dim()):
            like = like.narrow(dim, 0, 1)
        mask = self.draws.mask(like, p)
        return input.mul_(mask) if inplace else input * mask

    def _fail(self, reason: str, remedy: str) -> ExportError:
        return ExportError(reason, remedy) if self._recorder is None else self._recorder.fail(reason, remedy)

    def _batch_norm(self, input: torch.Tensor, running_mean: Optional[torch.Tensor], running_var: Optional[torch.Tensor],
                    weight: Optional[torch.Tensor] = None, bias: Optional[torch.Tensor] = None, training: bool = False,
                    momentum: float = 0.1, eps: float = 1e-5) -> torch.Tensor:
        if not training:
            if running_mean is None or running_var is None:
                raise self._fail("batch normalization in evaluation has no running statistics", "Set track_running_stats=True")
            return torch.native_batch_norm(input, weight, bias, running_mean, running_var, False, 0.0, eps)[0]
        if self._recorder is not None and self._recorder.backward:
            raise self._fail("batch normalization is recomputed in the backward pass, as by activation checkpointing",
                             "Disable activation checkpointing: Motley recomputes activations itself if memory is short")
        if self._recorder is None or running_mean is None or running_var is None:
            return self._normalized(input, running_mean, running_var, weight, bias, momentum, eps)
        args = (input, running_mean, running_var, weight, bias, True, momentum, eps)
        return self._recorder.as_call(batch_norm, args, lambda: self._normalized(input, running_mean, running_var, weight, bias, momentum, eps))

    def _normalized(self, input: torch.Tensor, running_mean: Optional[torch.Tensor], running_var: Optional[torch.Tensor],
                    weight: Optional[torch.Tensor], bias: Optional[torch.Tensor], momentum: float, eps: float) -> torch.Tensor:
        """Normalizes by the statistics of the micro-batch, and records them."""
        out, mean, invstd = torch.native_batch_norm(input, weight, bias, None, None, True, 0.0, eps)
        if running_mean is not None and running_var is not None:
            count = input.numel() // input.size(1)
            with torch.no_grad():
                var = ((invstd * invstd).reciprocal() - eps) * count / (count - 1)
            for tensor, value in ((running_mean, mean.detach()), (running_var, var)):
                if not self.whole and any(seen.tensor is tensor for seen in self.observed):
                    raise self._fail("a batch normalization runs twice in one layer", "Use a separate module for each")
                self.observed.append(Observed(tensor, momentum, value))
        return out

    def _torch_batch_norm(self, input: torch.Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any,
                          training: bool, momentum: float, eps: float, cudnn_enabled: bool) -> torch.Tensor:
        return self._batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)

    def _alpha_dropout(self, input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> torch.Tensor:
        return self._alpha_masked(input, input, p, training, inplace)

    def _feature_alpha_dropout(self, input: torch.Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> torch.Tensor:
        like = input
        for dim in range(2, input.dim()):
            like = like.narrow(dim, 0, 1)
        return self._alpha_masked(input, like, p, training, inplace)

    def _alpha_masked(self, input: torch.Tensor, like: torch.Tensor, p: float, training: bool, inplace: bool) -> torch.Tensor:
        """Dropped values become SELU's lower limit; an affine map then preserves mean and variance."""
        if not training or p == 0:
            return input
        kept = (self.draws.mask(like, p) != 0).to(input.dtype)
        alpha = 1.7580993408473766
        scale = 0.0 if p == 1 else 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
        moved = (kept - 1) * (alpha * scale) + alpha * scale * p
        out = input * (kept * scale) + moved
        return input.copy_(out) if inplace else out

    def _max_pool1d(self, *args: Any, return_indices: bool = False, **kwargs: Any) -> Any:
        # Without a gradient, max_pool1d computes its result without a recordable operation.
        values, indices = torch.max_pool1d_with_indices(*args, **kwargs)
        return (values, indices) if return_indices else values

    def _prelu(self, input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        # PyTorch 1.13 and 2 have different operations for PReLU.
        if weight.numel() > 1:
            weight = weight.view([-1] + [1] * (input.dim() - 2))
        return torch.where(input > 0, input, weight * input)

    def _rms_norm(self, input: torch.Tensor, normalized_shape: Any, weight: Optional[torch.Tensor] = None,
                  eps: Optional[float] = None) -> torch.Tensor:
        # Releases of PyTorch 2 fuse RMSNorm differently.
        dims = tuple(range(-len(normalized_shape), 0))
        eps = torch.finfo(input.dtype).eps if eps is None else eps
        out = input * torch.rsqrt(input.pow(2).mean(dims, keepdim=True) + eps)
        return out if weight is None else out * weight

    def _attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                   attn_mask: Optional[torch.Tensor] = None, dropout_p: float = 0.0, is_causal: bool = False,
                   scale: Optional[float] = None, enable_gqa: bool = False) -> torch.Tensor:
        if enable_gqa:
            key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
            value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
        scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
        if is_causal:
            seen = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool, device=query.device).tril()
            scores = scores.masked_fill(~seen, float("-inf"))
        if attn_mask is None:
            return self._dropout(scores.softmax(-1), dropout_p) @ value
        if attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
        return self._dropout(self._softmax(scores, attn_mask), dropout_p) @ value

    def _softmax(self, scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """The softmax of scores. A fully masked row is 0 since PyTorch 2.5, and NaN before."""
        if not _MASKED_ROWS_ARE_ZERO:
            return scores.softmax(-1)
        known = self._recorder is not None and not self._recorder.varies(mask)
        if known and not bool((mask if mask.dtype == torch.bool else mask > float("-inf")).any(-1).logical_not().any()):
            return scores.softmax(-1)
        empty = (scores == float("-inf")).all(-1, keepdim=True)
        return scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)


def batch_norm(*args: Any) -> torch.Tensor:
    """The current `torch.nn.functional.batch_norm`: within an `Intercept`, the replaced one."""
    return F.batch_norm(*args)


_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _step_by_step(function: Callable[..., Any], _: Intercept, *args: Any, **kwargs: Any) -> Any:
    """Runs a recurrent network without oneDNN, as operations that packages support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about flags of other devices
        with torch.backends.mkldnn.flags(enabled=False):
            return function(*args, **kwargs)


def _full(_: Intercept, size: Any, fill_value: Any, **kwargs: Any) -> torch.Tensor:
    """Sets the type of a boolean fill value, which PyTorch 1.13 treats as an integer under any mode."""
    if isinstance(fill_value, bool) and kwargs.get("dtype") is None:
        kwargs["dtype"] = torch.bool
    return torch.full(size, fill_value, **kwargs)


def _replaced() -> Dict[Any, Callable[..., Any]]:
    table: Dict[Any, Callable[..., Any]] = {
        torch.full: _full,
        F.dropout: Intercept._dropout,
        torch.dropout: Intercept._torch_dropout,
        F.batch_norm: Intercept._batch_norm,
        torch.batch_norm: Intercept._torch_batch_norm,
        F.max_pool1d: Intercept._max_pool1d,
        torch.max_pool1d: Intercept._max_pool1d,
        F.prelu: Intercept._prelu,
        torch.prelu: Intercept._prelu,
    }
    for name in _RECURRENT:
        table[getattr(torch, name)] = functools.partial(_step_by_step, getattr(torch, name))
    for owner, name in ((F, "alpha_dropout"), (torch, "alpha_dropout"), (F, "feature_alpha_dropout"), (torch, "feature_alpha_dropout")):
        table[getattr(owner, name)] = Intercept._alpha_dropout if name == "alpha_dropout" else Intercept._feature_alpha_dropout
    for name in ("dropout1d", "dropout2d", "dropout3d"):
        if hasattr(F, name):
            table[getattr(F, name)] = Intercept._channel_dropout
    for owner in (F, torch):
        if hasattr(owner, "rms_norm"):
            table[owner.rms_norm] = Intercept._rms_norm
    if hasattr(F, "scaled_dot_product_attention"):
        table[F.scaled_dot_product_attention] = Intercept._attention
    return table


_FAST_PATH = getattr(torch.backends, "mha", None)
"""The fused attention of PyTorch 2 for modules without a gradient."""

_MASKED_ROWS_ARE_ZERO = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) >= (2, 5)

_REPLACED = _replaced()

_VALUE_ACCESS = frozenset({torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.__array__, torch.Tensor.__dlpack__})
"""Methods that convert tensor values to Python without a recorded operation."""

_BY_NAME = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "batch_norm", "max_pool1d", "prelu", "rms_norm", "scaled_dot_product_attention")
