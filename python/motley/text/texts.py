"""Prepared texts: the result of `motley.text`, and as the data of a training."""

from __future__ import annotations

import os
import shutil
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import numpy
import torch

from ..data import Arrays
from ..errors import MotleyError
from ..losses import Loss
from ..named import Input
from ..padding import Padding
from . import documents
from .rows import open_rows


class Texts:
    """Rows of tokens with their targets, in a folder. `data[k]` are the arrays of row k, `data.counts` the numbers of documents and tokens."""

    def __init__(self, folder: str, manifest: Mapping[str, Any]):
        self.path = folder
        self.manifest = manifest
        self.counts: Dict[str, int] = manifest["counts"]
        self.length: int = manifest["length"]
        self.packing: bool = manifest["settings"]["packing"]
        self._files = open_rows(folder, manifest["files"], manifest["rows"], self.length)

    def __len__(self) -> int:
        """The number of rows."""
        return self.manifest["rows"]

    def __getitem__(self, k: int) -> Dict[str, numpy.ndarray]:
        """The inputs by name, and "labels": the target of each position."""
        return {"labels" if name == "targets" else name.partition(".")[2]: numpy.array(array[k]) for name, array in self._files.items()}

    def shown(self, k: int, tokenizer: Any) -> str:
        """Row k as text, without its padding; what is trained on is in ⟦ ⟧."""
        row = self[k]
        real = row["document_ids" if self.packing else "attention_mask"] > 0
        trained = numpy.concatenate([[False], row["labels"] != self.manifest["ignored"]])[:self.length]  # a target is the next token
        made = []
        borders = [0, *(int(b) for b in numpy.flatnonzero(numpy.diff(trained[real])) + 1), int(real.sum())]
        for start, end in zip(borders, borders[1:]):
            part = tokenizer.decode(row["input_ids"][start:end].tolist())
            made.append(f"⟦{part}⟧" if trained[start] else part)
        return "".join(made)

    def summary(self) -> str:
        counts, places = self.counts, len(self) * self.length
        return (f"{counts['documents']:,} documents, {counts['tokens']:,} tokens, {counts['trained_tokens']:,} of them trained on, in {len(self):,} "
                f"rows of {self.length} ({100 * self.manifest['padding'] / places:.1f} % padding)")

    def arrays(self) -> Tuple[Dict[str, numpy.ndarray], numpy.ndarray]:
        """The mapped inputs by name, and targets."""
        inputs = {name.partition(".")[2]: array for name, array in self._files.items() if name != "targets"}
        return inputs, self._files["targets"]


class TextArrays(Arrays):
    """Prepared texts as the data of a training."""

    def __init__(self, texts: Texts, held_out: Any, loss: Loss):
        self._padding, self._loss = Padding(None), loss
        self._texts, self._others = texts, held_out
        self.inputs, self.targets = texts.arrays()
        self.held_out = None
        if loss.ignored is not None and loss.ignored != texts.manifest["ignored"]:
            raise MotleyError(f"the loss ignores the target {loss.ignored}, and texts have {texts.manifest['ignored']} where they are not trained "
                              "on. Pass nn.CrossEntropyLoss()")
        if held_out is not None:
            if not isinstance(held_out, Texts):
                raise MotleyError(f"eval_data= is a {type(held_out).__name__}, and the data are texts. Prepare it with motley.text too")
            if (held_out.length, held_out.packing) != (texts.length, texts.packing):
                raise MotleyError(f"eval_data= has rows of {held_out.length} tokens{' with packing' if held_out.packing else ''}, and the data of "
                                  f"{texts.length}{' with packing' if texts.packing else ''}. Prepare it with the same packing= and "
                                  f"length={texts.length}")
            self.held_out = held_out.arrays()

    def example(self) -> Tuple[Input, torch.Tensor]:
        """Rows with many documents and with much padding, as the model receives them."""
        chosen = self._texts.manifest["example"]
        assert isinstance(self.inputs, dict)
        return ({name: torch.from_numpy(array[chosen].astype(numpy.int64)) for name, array in self.inputs.items()},
                torch.from_numpy(self.targets[chosen].astype(numpy.int64)))

    def forward(self, model: torch.nn.Module) -> Optional[Callable[[Any], Any]]:
        """The call of a model for these inputs, if it is not by keyword arguments; refuses models for which it would be wrong."""
        if not self._texts.packing:
            return None
        documents.check_takes(model, self._texts.length)
        call = documents.call_of(model)
        documents.check_separate(model, call, self.example()[0])
        return call

    def write(self, folder: str) -> Dict[str, Any]:
        """Hard links to the files, or copies on another file system, so that the folder is complete in itself."""
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):
            if name.endswith(".npy"):
                os.remove(os.path.join(folder, name))
        for texts, prefix in ((self._texts, ""), (self._others, "eval_")):
            for name in texts.manifest["files"] if texts is not None else []:
                _link(os.path.join(texts.path, f"{name}.npy"), os.path.join(folder, f"{prefix}{name}.npy"))
        return {"kind": "arrays", "path": os.path.abspath(folder)}


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def training_data(texts: Texts, held_out: Any, loss: Loss, context: Optional[int], pad: Any) -> TextArrays:
    """Texts that were passed to `motley.train`."""
    for name, given in (("context", context), ("pad", pad)):
        if given is not None:
            raise MotleyError(f"{name}= does not apply to prepared texts, whose rows have {texts.length} tokens. Leave it out")
    return TextArrays(texts, held_out, loss)
