"""Avoids wrong results of PyTorch's kernels for some memory layouts of their arguments."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from torch.utils._python_dispatch import TorchDispatchMode

from . import operations


class ContiguousWhereNeeded(TorchDispatchMode):
    """Makes arguments contiguous for kernels that assume it. The backward of GELU in 1.13 reads uninitialized memory if its
    incoming gradient is not contiguous."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        name = operations.name_of(func)
        return operations.run_kernel(func, name, operations.with_tensors(name, args), kwargs or {})
