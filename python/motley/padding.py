"""Pads samples of unequal length, where the caller of `motley.train` gives the values for it."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

import numpy

from .errors import MotleyError

TARGETS = ("labels", "label", "targets", "target", "y", "label_ids")
"""Usual names of targets."""


class Padding:
    """At the end of the first dimension of samples, up to the longest training sample."""

    def __init__(self, values: Optional[Mapping[str, Any]]):
        """`values`: by the name of the input, "inputs" for one without a name; of the target by one of its usual names."""
        if values is not None and not isinstance(values, Mapping):
            raise MotleyError(f"pad= is {values!r}. Pass a dictionary of values by the names of inputs and target, such as "
                              "{'input_ids': 0, 'attention_mask': 0, 'labels': -100}")
        self._values = dict(values or {})
        self._length: Dict[str, int] = {}  # [name] of the padded training samples

    def check(self, names: List[str]) -> None:
        """Refuses values for what is not there. `names`: of the inputs."""
        known = {name or "inputs" for name in names} | set(TARGETS)
        unknown = [name for name in self._values if name not in known]
        if unknown:
            raise MotleyError(f"pad= has {', '.join(map(repr, unknown))}, and the inputs are "
                              f"{', '.join(repr(name or 'inputs') for name in names)}. "
                              "Name these, and the target as 'labels'")

    def stacked(self, samples: List[numpy.ndarray], name: str) -> Optional[numpy.ndarray]:
        """All samples as one array; None if there is no value for `name`, which is "targets" or that of an input."""
        value = self.value(name)
        if value is None:
            return None
        inner = {sample.shape[1:] for sample in samples}
        if len(inner) > 1 or any(sample.ndim == 0 for sample in samples):
            return None
        longest = max(len(sample) for sample in samples)
        length = self._length.setdefault(name, longest)
        if longest > length:
            raise MotleyError(f"a sample of {name} has the length {longest}, and the longest one to train on {length}. Crop it")
        dtype = numpy.result_type(*(sample.dtype for sample in samples))
        _check_fits(value, dtype, name)
        made = numpy.full((len(samples), length, *next(iter(inner))), value, dtype=dtype)
        for row, sample in zip(made, samples):
            row[:len(sample)] = sample
        return made

    def value(self, name: str) -> Any:
        """The value for `name`, which is "targets" or that of an input; None if there is none."""
        names = TARGETS if name == "targets" else (name or "inputs",)
        return next((self._values[key] for key in names if key in self._values), None)


def _check_fits(value: Any, dtype: "numpy.dtype[Any]", name: str) -> None:
    """Refuses a value that would become another one in the samples' type."""
    try:
        same = bool(numpy.array(value).astype(dtype) == value)
    except (TypeError, ValueError, OverflowError):
        same = False
    if not same:
        raise MotleyError(f"pad= has {value!r} for {name}, whose values are {dtype}. Pass a value of this type")
