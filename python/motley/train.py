"""`motley.train`: exports a model, writes its data, and runs Motley."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch

from . import data as samples
from . import losses, probe, save
from .errors import MotleyError, step
from .export import export
from .layers import Call, Layers, as_layers
from .load import load
from .manifest import has_checkpoint, newest_checkpoint, read_manifest
from .named import Limit
from .program import find_program
from .settings import EXPORT_OPTIONS, Sections, check, sections_of, toml
from .setup import Setup
from .split import split
from .split.whole_trace import whole_model
from .text import Texts, training_data

Path = Union[str, "os.PathLike[str]"]

_REFUSED = 3
"""The exit status for an invalid configuration (docs/exit-status.md)."""


class Run(NamedTuple):
    """A completed training run; the result of `motley.train`."""

    run: str
    """The run folder, with metrics, report and checkpoints."""
    package: str
    """The exported model (docs/formats/package.md)."""
    config: str
    """The configuration, for `motley launch` and `motley train`."""
    program: str = "motley"
    """The path of the program that trained."""

    def metrics(self) -> List[Dict[str, Any]]:
        """What each step reported, such as `loss` and, after an evaluation, `eval_loss`, `eval_accuracy` and `eval_top5_accuracy`
        (docs/formats/metrics.md).

        Raises MotleyError if the run folder has no metrics, or a damaged line.
        """
        path = os.path.join(self.run, "metrics.jsonl")
        try:
            with open(path, encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        except (OSError, ValueError) as error:
            raise MotleyError(f"cannot read the metrics of the run, {path}: {error}") from error

    def state_dict(self, best: bool = False) -> Dict[str, torch.Tensor]:
        """The trained state_dict, with the names, shapes and types of the model's; see `motley.load`, also for errors.

        best   that of the checkpoint with the lowest held-out loss (checkpoint__keep_best=True), instead of the newest one
        """
        return load(self._checkpoint(best), self.package)

    def save_pretrained(self, folder: Path, best: bool = False) -> None:
        """Writes `folder` as `motley ckpt export` does: for transformers the whole model, or for peft its adapter where that is all
        that trains. `best` as for `state_dict`.

        The folder must not exist. Raises MotleyError if it does, or if the run has no whole checkpoint.
        """
        save.save_pretrained(self.program, self._checkpoint(best), self.package, folder)

    def _checkpoint(self, best: bool) -> str:
        return os.path.join(self.run, "checkpoints", "best") if best else self.run


def train(model: torch.nn.Module, loss: Any, data: Any, cluster: Optional[Path] = None, *, eval_data: Any = None,
          layers: Optional[Union[Layers, Iterable[Tuple[str, Call]]]] = None, context: Optional[int] = None,
          run: Optional[Path] = None, resume: bool = False, allow_changes: bool = False, links: Optional[Path] = None,
          adapt: bool = False, motley: Optional[Path] = None, base: Optional[str] = None, pad: Optional[Mapping[str, Any]] = None,
          export_options: Optional[Dict[str, Any]] = None,
          follow: Callable[[str], None] = print, **settings: Any) -> Run:
    """Trains `model` on this machine, or on the machines of a cluster file, and returns at the end of the run.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    >>> images, labels = torch.rand(1000, 1, 8, 8), torch.randint(10, (1000,))           # float32 and int64
    >>> run = motley.train(model, nn.CrossEntropyLoss(), (images, labels), steps=200, global_batch=64, lr=1e-3)
    >>> model.load_state_dict(run.state_dict())                                           # the model itself did not change

    The call replaces the loop over batches, the optimizer and backward(). It exports the model as a package
    (`motley.export`), writes package, data and configuration to RUN.setup, and runs the program `motley`. With
    cluster="home.toml" the layers are divided among the machines of that file, by their measured speeds. A second call
    resumes an interrupted run, or continues an ended one with more steps:

    >>> run = motley.train(model, nn.CrossEntropyLoss(), (images, labels), run="runs/digits", steps=1000)
    >>> run = motley.train(model, nn.CrossEntropyLoss(), (images, labels), run="runs/digits", steps=2000, resume=True,
    ...                    allow_changes=True)                     # since the learning rate depends on steps

    model         a torch.nn.Module; what it returns for a batch of inputs goes to the loss
    loss          `nn.CrossEntropyLoss()`, `nn.MSELoss()`, their functions, or a function (output, target) -> (sum, count)
    data          samples in the first dimension of each tensor or array:
                    (inputs, targets)       [samples, ...] and [samples] for classes, [samples, ...] for numbers
                    ({"ids": a, "mask": b}, targets)   several inputs, the model's keyword arguments; the dictionary
                                            may contain the targets as "labels"
                    a dataset or a list     of such pairs; it is read once
                    tokens, with context=T  one row [tokens]; a sample is T of them, its targets are the next tokens
                    motley.text(...)        chats, instructions or texts, prepared with the model's tokenizer
    cluster       the machines and links (docs/formats/cluster.md); RUN.setup must have the same path on them, shared or
                  copied: the package on all machines, the data on the machine with the first layers. By default this
                  machine alone
    eval_data     held-out data of the same kind; by default data__holdout=0.1 of `data`
    layers        as for `motley.export`; by default those of `motley.split` with a sample of the data
    context       the number of tokens of a sample
    run           the run folder; by default runs/NAME-TIME in the current one
    resume        continue the run from its newest checkpoint, with the package and the data in RUN.setup; given settings
                  replace all earlier ones. A completed run is not changed
    allow_changes with `resume`, accept settings that change the run's results
    links         the file of `motley probe --output`, with the measured links of the cluster
    adapt         move layers to machines that run them faster by the measured steps of the run
    motley        the program; by default the one installed with this package, else the one on PATH
    base          as for `motley.export`: "int8", "int4" or "nf4" for the frozen weights of linear layers
    pad           values that fill up samples of unequal length at their end, by the names of inputs and target, such as
                  {"input_ids": 0, "attention_mask": 0, "labels": -100}. By default such samples are refused
    export_options
                  options of `motley.export`: forward, input_limit, target_limit, decayed, files, unit, units_per_sample;
                  they may also be passed like settings
    follow        is called with each line that Motley prints
    settings      keys of `[train]`, such as steps=1000 or epochs=3, lr=1e-3, global_batch=64, optimizer="sgd"; keys of other
                  sections with two underscores, such as data__holdout=0.2 or run__threads=4 (docs/formats/config.md)

    Returns a `Run`: `run.state_dict()` are the trained tensors, `run.run` is the folder with metrics and checkpoints.

    Raises
      MotleyError        invalid arguments, settings or data, with the place; a training that failed, with its last lines
      ExportError        a model that cannot be traced, with the module and the line; it is a MotleyError
      KeyboardInterrupt  on Ctrl-C, after Motley has finished its step and saved a checkpoint; resume=True continues
    """
    if not isinstance(model, torch.nn.Module):
        raise MotleyError(f"the model is a {type(model).__name__}. Pass a torch.nn.Module, the loss and the data, in this order")
    with step("reading the arguments"):
        program = find_program(motley)
        folder = os.path.abspath(os.fspath(run) if run is not None else time.strftime(f"runs/{type(model).__name__}-%Y%m%d-%H%M%S"))
        options = {**(export_options or {}), **{key: settings.pop(key) for key in EXPORT_OPTIONS if key in settings}}
        options.update({"base": base} if base is not None else {})
        sections = sections_of(settings, folder)
        if eval_data is not None and "holdout_path" in sections.get("data", {}):
            raise MotleyError("eval_data= and data__holdout_path= are both held-out data. Pass one of them")
        arguments = ["--cluster", os.fspath(cluster)] if cluster is not None else []
        arguments += ["--links", os.fspath(links)] if links is not None else []
    with Setup(folder, resume) as setup:
        if resume:
            if settings:
                sections = setup.merged(sections)
                check(program, sections)
            if _has_ended(folder, sections):
                follow(_ended_message(folder))
                return Run(folder, setup.package, setup.config, program)
        else:
            with step("reading the data"):
                parsed_loss = losses.parse(loss)
                data_given = (training_data(data, eval_data, parsed_loss, context, pad) if isinstance(data, Texts)
                              else samples.parse(data, eval_data, context, parsed_loss, pad))
            check(program, {**sections, "data": {"kind": "arrays" if context is None else "tokens", **sections.get("data", {})}})
            with step("calling the model with packed documents"):
                called = data_given.forward(model) if layers is None and "forward" not in options else None
                options.update({"forward": called} if called is not None else {})
            with step("splitting the model"):
                described = as_layers(layers, model) if layers is not None else whole_model(model, options.get("forward"))
            _check_values(data_given, described, parsed_loss, options, sections)
            if layers is not None:
                options.setdefault("model", model)
            else:
                with step("splitting the model"):
                    described = split(model, data_given.example(), forward=options.get("forward"))
            with step("exporting the model"):
                by_hand = layers is not None and not isinstance(layers, Layers)
                export(described.layers if by_hand else described, loss, data_given.example(), setup.package,
                       name=os.path.basename(folder), **options)
            with step(f"writing the data to {setup.folder}"):
                setup.write_data(data_given)
            sections = setup.merged(sections)
        if settings or not resume:
            setup.write(toml(sections))
        command = [program, "launch" if cluster is not None else "train", setup.config] + arguments
        command += ["--adapt"] if adapt else []
        command += ["--resume"] if resume else []
        command += ["--allow-changes"] if resume and allow_changes else []
        try:
            _follow(command, follow)
        except Refused:
            setup.restore()
            raise
    return Run(folder, setup.package, setup.config, program)


def _check_values(data: Union[samples.Arrays, samples.Tokens], described: Layers, loss: losses.Loss, options: Dict[str, Any],
                  sections: Sections) -> None:
    """Refuses unsuitable data before the export, which may take minutes."""
    with step("probing the inputs of the model"):
        found = probe.limits(described, loss, data.example())
    finite = sections.get("data", {}).get("allow_nonfinite") is not True
    with step("checking the data"):
        data.check(_limits(options.get("input_limit"), found.inputs), options.get("target_limit", found.targets), loss.ignored, finite)


def _limits(given: Limit, found: Limit) -> Limit:
    """The limits of the caller, or else those of the model."""
    if isinstance(given, Mapping) and isinstance(found, Mapping):
        return {**found, **given}
    return found if given is None else given


def _has_ended(run: str, sections: Dict[str, Dict[str, Any]]) -> bool:
    """Whether the newest checkpoint has all steps of the run or, if given, of its new settings."""
    if not has_checkpoint(run):
        return False
    manifest = read_manifest(newest_checkpoint(run))
    before, given = manifest["config"].get("train", {}), sections.get("train", {})
    wanted = {**before, **given}
    if "steps" not in given and given.get("epochs", before.get("epochs")) != before.get("epochs"):
        return False  # Motley counts the steps
    if _has_stopped_early(manifest, wanted):
        return True
    return wanted.get("steps") is not None and manifest["step"] >= wanted["steps"]


def _has_stopped_early(manifest: Dict[str, Any], train: Dict[str, Any]) -> bool:
    limit, record = train.get("early_stopping", 0), manifest.get("evaluations")
    count = record.get("without_lower") if isinstance(record, dict) else None
    return isinstance(limit, int) and limit > 0 and isinstance(count, int) and count >= limit


def _ended_message(run: str) -> str:
    manifest = read_manifest(newest_checkpoint(run))
    train = manifest["config"].get("train", {})
    if _has_stopped_early(manifest, train):
        return (f"{run} has stopped early after step {manifest['step']}; early_stopping=0, or a larger number, continues it")
    schedule = train.get("schedule")
    message = f"{run} has ended after {train.get('steps')} steps; a larger steps= continues it"
    if schedule == "constant" or train.get("schedule_steps"):
        return message
    return message + f", with allow_changes=True: the learning rate of schedule={schedule!r} depends on the number of steps"


class Refused(MotleyError):
    """Motley refused the configuration; no training was started."""


def _follow(command: List[str], follow: Callable[[str], None]) -> None:
    """Runs Motley in its own session, so that an interrupt of this process reaches it exactly once, and reads its output to the
    end."""
    last: List[str] = []
    interrupted = False
    with step(f"starting {command[0]}"):
        started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True, preexec_fn=_ends_with_this_process())
    with started as process:
        assert process.stdout is not None
        while True:
            try:
                line = process.stdout.readline()
                if not line:
                    break
                last = last[-19:] + [line.rstrip("\n")]
                follow(last[-1])
            except KeyboardInterrupt:
                interrupted = True
                process.send_signal(signal.SIGINT)
            except BaseException:
                process.terminate()
                raise
    if interrupted and process.returncode != 0:
        raise KeyboardInterrupt("Motley was interrupted; if it has saved a checkpoint, the same call with resume=True continues "
                                "the run")
    if process.returncode != 0:
        end = (f"ended with status {process.returncode} (docs/exit-status.md)" if process.returncode > 0
               else f"was killed by signal {-process.returncode} ({signal.strsignal(-process.returncode)})")
        message = f"`{' '.join(command)}` {end}. Its last lines:\n" + "\n".join(last)
        if process.returncode != _REFUSED:
            raise MotleyError(message)
        raise Refused(message + ("\nIn Python, pass allow_changes=True for --allow-changes" if "--allow-changes" in "\n".join(last) else ""))


def _ends_with_this_process() -> Optional[Callable[[], object]]:
    """The function by which a child process requests SIGTERM at the end of this process; Linux only."""
    if sys.platform != "linux":
        return None
    c_library = ctypes.CDLL(None)  # loaded before the fork, after which few calls are safe
    set_parent_death_signal = 1
    return lambda: c_library.prctl(set_parent_death_signal, int(signal.SIGTERM))
