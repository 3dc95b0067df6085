"""The planned memory of packages with frozen parts matches that of their workers. MOTLEY_PROGRAM names the program.

A sample of bench/package_memory, which compares larger models under limits.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import pathlib
import tempfile
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

FROZEN_BYTES = 45 << 20
"""Minimum size of the sample's frozen weights. The libraries' memory, measured a moment earlier, is small in
comparison."""


def bench() -> types.ModuleType:
    loader = importlib.machinery.SourceFileLoader("package_memory", str(ROOT / "bench/package_memory"))
    spec = importlib.util.spec_from_loader("package_memory", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Memory(unittest.TestCase):
    def test_of_adapters_on_frozen_weights_is_as_planned(self) -> None:
        package_memory = bench()
        with tempfile.TemporaryDirectory() as folder:
            options = types.SimpleNamespace(work=pathlib.Path(folder), scale=0.5, program=os.environ["MOTLEY_PROGRAM"], no_limits=True)
            status, ranks = package_memory.measure("lora", options)
            self.assertEqual(status, 0)
            self.assertGreater((options.work / "lora.motley/weights.safetensors").stat().st_size, FROZEN_BYTES)
            for rank in ranks:
                predicted, taken = (rank["memory_bytes"][key] for key in ("predicted", "measured"))
                self.assertGreater(predicted / taken, 1 + package_memory.OFF[0], rank["machine"])
                self.assertLess(predicted / taken, 1 + package_memory.OFF[1], rank["machine"])


if __name__ == "__main__":
    unittest.main()
