"""The per-Python part of scripts/operation-battery: runs all cases in all layouts and compares the values of two
versions."""

from __future__ import annotations

import sys
import time
from typing import Any, Dict, List, Union

import torch

import layouts_test
import operation_cases
from motley import interpret, operations

Values = Dict[str, Union[str, List[torch.Tensor]]]
"""[name of a case] its results for contiguous arguments, or the reason of the rejection."""


def run(path: str, only: str, raw: bool) -> int:
    """Prints the effects of layouts and writes the values. Returns 1 if a layout changes a result."""
    if raw:
        interpret.operations.run = lambda name, args, kwargs: operations.find(name)(*args, **kwargs)
    start, calls, wrong = time.time(), 0, 0
    values: Values = {}
    for case in operation_cases.read():
        if only not in case.op:
            continue
        tensors = [operation_cases.make(spec, seed) for seed, spec in enumerate(case.tensors)]
        try:
            values[case.name] = [tensor.contiguous() for tensor in layouts_test.call(case, [t.clone() for t in tensors])]
        except (RuntimeError, IndexError) as error:
            values[case.name] = str(error).splitlines()[0]
            print(f"{torch.__version__}: {case.name} {case.tensors} is refused: {values[case.name]}")
            continue
        faults = []
        for variant in operation_cases.variants(case, tensors):
            calls += 1
            fault = layouts_test.fault(case, variant.tensors)
            if fault:
                faults.append(f"{variant.name}: {fault}")
        if faults:
            wrong += len(faults)
            print(f"{torch.__version__}: {case.name}: " + "; ".join(faults))
    print(f"{torch.__version__}: {calls} calls, {wrong} wrong, {time.time() - start:.0f} s", flush=True)
    torch.save(values, path)
    return int(wrong > 0)


def compare(first: str, second: str, tolerance: float) -> None:
    """Prints the cases with different values."""
    one, other = torch.load(first), torch.load(second)
    differ = 0
    for name in one:
        difference = _difference(one[name], other[name], tolerance)
        if difference:
            differ += 1
            print(f"{torch.__version__}: {name} differs from the first version: {difference}")
    print(f"{torch.__version__}: {differ} of {len(one)} cases differ from the first version by more than {tolerance}", flush=True)


def _difference(one: Any, other: Any, tolerance: float) -> str:
    if isinstance(one, str) or isinstance(other, str):
        return "" if isinstance(one, str) and isinstance(other, str) else "only one of them refuses it"
    worst = max((layouts_test.distance(a, b) for a, b in zip(one, other)), default=0.0)
    return "" if worst <= tolerance else f"{worst:.2g} of the largest element"


if __name__ == "__main__":
    if sys.argv[1] == "run":
        sys.exit(run(sys.argv[2], sys.argv[3], sys.argv[4] == "1"))
    compare(sys.argv[2], sys.argv[3], float(sys.argv[4]))
