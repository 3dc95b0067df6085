"""The memory of comparisons with PyTorch, counted by the tensors that are alive after each operation."""

from __future__ import annotations

import contextlib
import json
import os
import unittest
import unittest.mock
import warnings
from typing import Any, Dict, Iterator, List, Tuple

import torch
import torch.nn as nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import language_models
from support import Folder, motley

from motley import check, folder_model, pieces, reference, rounding, smaller_comparison, weights
from motley.memory_limit import GIB, MemoryLimit

VOCABULARY, TOKENS = 1000, 160


class Alive(TorchDispatchMode):
    """The most bytes of tensors that are alive at once, of those that operations read or make."""

    def __init__(self) -> None:
        super().__init__()
        self.most = 0
        self._storages: Dict[int, Tuple[Any, int]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_flatten([args, kwargs, out])[0]:
            if isinstance(leaf, torch.Tensor) and type(leaf) in (torch.Tensor, nn.Parameter):
                storage = leaf.untyped_storage() if hasattr(leaf, "untyped_storage") else leaf.storage()
                reference = StorageWeakRef(storage)
                self._storages[reference.cdata] = reference, len(storage) * (1 if hasattr(leaf, "untyped_storage") else leaf.element_size())
        self._storages = {key: each for key, each in self._storages.items() if not each[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._storages.values()))
        return out


@contextlib.contextmanager
def counted() -> Iterator[List[Tuple[str, int, int]]]:
    """(layer, counted bytes, bytes that MemoryLimit allows for) of each comparison and each reference. Small tensors are treated as
    large ones."""
    found: List[Tuple[str, int, int]] = []
    limits: List[MemoryLimit] = []
    made, compare, add = MemoryLimit.__init__, check.EagerComparison.compare, reference.References.add

    def limit(own: Any, *given: Any, **named: Any) -> None:
        made(own, *given, **named)
        limits.append(own)

    def counting(original: Any, counts: Any) -> Any:
        def run(own: Any, values: Any) -> None:
            alive = Alive()
            with alive:
                original(own, values)
            found.append((values.traced.name, alive.most, limits[-1].bytes(values.index, limits[-1].samples(values.index, counts))))

        return run

    with unittest.mock.patch.object(MemoryLimit, "__init__", limit), \
            unittest.mock.patch.object(check.EagerComparison, "compare", counting(compare, (check.SAMPLES, check.MIN_SAMPLES))), \
            unittest.mock.patch.object(reference.References, "add", counting(add, (2, 1))), \
            unittest.mock.patch.object(pieces, "ELEMENTS", 1 << 14), unittest.mock.patch.object(pieces, "SPILLED_BYTES", 1 << 16), \
            unittest.mock.patch.object(rounding, "LARGE_BYTES", 1 << 14):
        yield found


def llama() -> nn.Module:
    return language_models.LlamaForCausalLM(VOCABULARY, 2, 64)


def exported(folder: Folder, memory: float) -> motley.Exported:
    """A Llama in bf16, exported from its folder."""
    torch.manual_seed(1)
    path = folder.path("weights")
    os.makedirs(path)
    weights.write(os.path.join(path, "model.safetensors"), {name: tensor.bfloat16() for name, tensor in llama().state_dict().items()})
    with motley.without_weights():
        model = llama()
    ids = torch.randint(VOCABULARY, (2, TOKENS))
    with warnings.catch_warnings(), unittest.mock.patch("motley.folder_weights._SMALL_MODEL_BYTES", 0):
        warnings.simplefilter("ignore")
        return motley.export(model, nn.CrossEntropyLoss(), (ids, ids), folder.path("x"), folder=path, memory=memory)


class Counted(unittest.TestCase):
    def test_comparisons_need_what_the_limit_counts(self) -> None:
        with Folder() as folder, counted() as found, unittest.mock.patch.object(check, "LARGE_BATCH", check.SAMPLES):
            exported(folder, 1.0)
        self.assertGreaterEqual(len(found), 6)
        for name, most, bytes in found:
            self.assertLessEqual(most, bytes, name)
        self.assertGreater(max(most / bytes for _, most, bytes in found), 0.5)

    def test_no_comparison_exceeds_the_limit(self) -> None:
        skipped = set()
        for megabytes in (2, 8, 24):
            with self.subTest(megabytes=megabytes), Folder() as folder, counted() as found:
                done = exported(folder, megabytes * (1 << 20) / GIB)
                self.assertTrue(found)
                for name, most, _ in found:
                    self.assertLessEqual(most, megabytes << 20, name)
                skipped.add(any("has no reference" in notice for notice in done.notices))
        self.assertEqual(skipped, {False, True})

    def test_large_gradients_are_compared_by_a_file(self) -> None:
        with pieces.Spilled() as right, unittest.mock.patch.object(pieces, "ELEMENTS", 64):
            for shape in ((), (5,), (1, 40, 30), (40, 30)):
                tensor = torch.randn(shape)
                tensor = tensor.transpose(-1, -2) if len(shape) > 1 else tensor
                with unittest.mock.patch.object(pieces, "SPILLED_BYTES", 0):
                    right.put(shape, tensor)
                parts = list(right.parts(shape, tensor))
                self.assertTrue(all(torch.equal(a, b) for a, b in parts))
                self.assertEqual(sum(a.numel() for a, _ in parts), tensor.numel())
                self.assertFalse(all(torch.equal(a, b) for a, b in right.parts(shape, tensor + 1)))


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class MappedMemory(unittest.TestCase):
    def test_returns_with_each_tensor(self) -> None:
        del [torch.ones(7 << 20)][:]  # after a release of 28 MiB, the C library would keep smaller tensors in its heap
        with pieces.mapped_memory():
            held = [torch.ones(2 << 20) for _ in range(16)]
            before = resident_bytes()
            del held[::2]
            self.assertLess(resident_bytes(), before - (56 << 20))


class SkippedLayers(unittest.TestCase):
    def test_are_compared_without_reading_equal_layers(self) -> None:
        begins, read, verified = set(), weights.Stored.values, smaller_comparison.verified_package

        def values(own: weights.Stored, *given: Any) -> torch.Tensor:
            begins.add(own.begin)
            return read(own, *given)

        def smaller(*given: Any) -> Any:
            with unittest.mock.patch.object(weights.Stored, "values", values):
                return verified(*given)

        with Folder() as folder, unittest.mock.patch.object(smaller_comparison, "verified_package", smaller):
            exported(folder, 8 / 1024)
            stored = weights.stored(folder.path("weights/model.safetensors"))
        names = {name for name, tensor in stored.items() if tensor.begin in begins}
        self.assertTrue(any(".layers.0." in name for name in names))
        self.assertFalse(any(".layers.1." in name for name in names))


class FewerIds(unittest.TestCase):
    def exported(self, loss: Any) -> Tuple[motley.Exported, List[int]]:
        """A model with an embedding that is too large for the limit, and the numbers of ids with which models were created."""
        class Opened(language_models.LlamaForCausalLM):
            def get_input_embeddings(self) -> nn.Module:
                return self.model.embed_tokens  # type: ignore[no-any-return]

        created: List[int] = []

        def create(folder: str, *_: Any, ids: int = 20_000, **__: Any) -> nn.Module:
            created.append(ids)
            with motley.without_weights():
                return Opened(ids, 2, 64)

        torch.manual_seed(1)
        state = {name: tensor.bfloat16() for name, tensor in Opened(20_000, 2, 64).state_dict().items()}
        with Folder() as folder, unittest.mock.patch.object(folder_model, "create", create), \
                unittest.mock.patch.object(smaller_comparison, "ROWS", 64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            os.makedirs(folder.path("weights"))
            weights.write(folder.path("weights/model.safetensors"), state)
            return motley.export(folder=folder.path("weights"), loss=loss, tokens=TOKENS, path=folder.path("x"), memory=4 * (1 << 20) / GIB), created

    def test_embeddings_that_are_too_large_are_compared_with_fewer_rows(self) -> None:
        done, created = self.exported(nn.CrossEntropyLoss())
        self.assertEqual(created, [20_000, 64])
        self.assertRegex(done.notices[-1], r"with 128 tokens, except .*embed_tokens.*\. .*embed_tokens.*: compared with the first 64 ids")

    def test_losses_for_a_number_of_classes_are_not_computed_with_fewer(self) -> None:
        done, created = self.exported(nn.CrossEntropyLoss(weight=torch.rand(20_000)))
        self.assertEqual(created, [20_000])
        self.assertRegex(done.notices[-1], r"with 128 tokens, except .*embed_tokens[^:]*$")


def _bytes(path: str) -> Dict[str, int]:
    """The size of each tensor of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    return {name: entry["data_offsets"][1] - entry["data_offsets"][0] for name, entry in header.items() if name != "__metadata__"}


class Bytes(unittest.TestCase):
    def test_of_a_package_are_about_those_of_its_folder(self) -> None:
        with Folder() as folder:
            done = exported(folder, 1.0)
            source, written = (_bytes(folder.path(name)) for name in ("weights/model.safetensors", "x/weights.safetensors"))
            self.assertEqual({name: written[name] for name in source}, source)
            self.assertLess(sum(size for name, size in written.items() if name not in source), 1 << 20)  # tables of positions
            self.assertEqual(done.largest_difference, 0.0)


if __name__ == "__main__":
    unittest.main()
