"""PyTorch without the errors that its kernels make of some layouts, and packages do not."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from torch.utils._python_dispatch import TorchDispatchMode

from . import operations


class ContiguousWhereNeeded(TorchDispatchMode):
    """Gives kernels the layouts that they take arguments to have. 1.13's own backward of a GELU reads memory that nothing was
    written to where the gradient that comes to it is not contiguous."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        return operations.run_kernel(func, operations.name_of(func), args, kwargs or {})
