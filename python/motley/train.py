"""`motley.train`: exports a model, writes its data, and runs Motley."""

from __future__ import annotations

import ctypes
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
from .settings import EXPORT_OPTIONS, Sections, check, sections_of, refuse_epochs, toml
from .setup import Setup
from .split import split
from .split.whole_trace import whole_model

Path = Union[str, "os.PathLike[str]"]

_REFUSED = 3
"""The exit status for an invalid configuration (docs/exit-status.md)."""


class Run(NamedTuple):
    """A completed training run."""

    run: str
    """The run folder, with metrics, report and checkpoints."""
    package: str
    config: str
    program: str = "motley"

    def state_dict(self) -> Dict[str, torch.Tensor]:
        """The trained state_dict; see `motley.load`."""
        return load(self.run, self.package)

    def save_pretrained(self, folder: Path) -> None:
        """Writes `folder` as `motley ckpt export` does: for transformers the whole model, or for peft its adapter where that is all
        that trains. The folder must not exist."""
        save.save_pretrained(self.program, self.run, self.package, folder)


def train(model: torch.nn.Module, loss: Any, data: Any, cluster: Optional[Path] = None, *, eval_data: Any = None,
          layers: Optional[Union[Layers, Iterable[Tuple[str, Call]]]] = None, context: Optional[int] = None,
          run: Optional[Path] = None, resume: bool = False, allow_changes: bool = False, links: Optional[Path] = None,
          adapt: bool = False, motley: Optional[Path] = None, base: Optional[str] = None, pad: Optional[Mapping[str, Any]] = None,
          export_options: Optional[Dict[str, Any]] = None,
          follow: Callable[[str], None] = print, **settings: Any) -> Run:
    """Trains `model` with Motley, on this machine or on the machines of a cluster file, and returns at the end of the run.

    loss, layers  as for `motley.export`; by default the layers are those of `motley.split` with a sample of the data
    data          (inputs, targets) as tensors or arrays, a dataset of such pairs, or a row of tokens, which needs `context`. Several
                  inputs are a dictionary by name, which may contain the targets as "labels"
    cluster       docs/formats/cluster.md; RUN.setup must have the same path on its machines, shared or copied: the package on all
                  machines, the data on the machine with the first layers
    run           the run folder; package, data and configuration are written to RUN.setup
    resume        continue the run from its newest checkpoint, with the package and the data in RUN.setup; given settings replace
                  all earlier ones. Settings that change results are refused without `allow_changes`. A completed run is not changed
    adapt         move layers to machines that run them faster by the measured steps of the run
    motley        the program; by default the one installed with this package, else the one on PATH
    base          as for `motley.export`: "int8", "int4" or "nf4" for the frozen weights of linear layers
    pad           values that fill up samples of unequal length at their end, by the names of inputs and target, such as
                  {"input_ids": 0, "attention_mask": 0, "labels": -100}. By default such samples are refused
    follow        is called with each line that Motley prints
    links         the file of `motley probe --output`, with the measured links of the cluster
    export_options
                  options of `motley.export`: forward, input_limit, target_limit, decayed, files, unit, units_per_sample; they may
                  also be passed like settings
    settings      keys of `[train]`, such as steps=1000, lr=1e-3, global_batch=64; keys of other sections with two underscores,
                  such as data__holdout=0.2 or run__threads=4 (docs/formats/config.md)

    The model itself does not change: `model.load_state_dict(run.state_dict())` loads the result. On Ctrl-C, or SIGINT to this
    process, Motley finishes its step and saves a checkpoint; then KeyboardInterrupt is raised.
    """
    if not isinstance(model, torch.nn.Module):
        raise MotleyError(f"the model is a {type(model).__name__}. Pass a torch.nn.Module, the loss and the data, in this order")
    with step("reading the arguments"):
        program = find_program(motley)
        folder = os.path.abspath(os.fspath(run) if run is not None else time.strftime(f"runs/{type(model).__name__}-%Y%m%d-%H%M%S"))
        options = {**(export_options or {}), **{key: settings.pop(key) for key in EXPORT_OPTIONS if key in settings}}
        options.update({"base": base} if base is not None else {})
        sections = sections_of(settings, folder)
        arguments = ["--cluster", os.fspath(cluster)] if cluster is not None else []
        arguments += ["--links", os.fspath(links)] if links is not None else []
    with Setup(folder, resume) as setup:
        if resume:
            refuse_epochs(sections, None, False)
            if settings:
                sections = setup.merged(sections)
                check(program, sections)
            if _has_ended(folder, sections):
                follow(_ended_message(folder))
                return Run(folder, setup.package, setup.config, program)
        else:
            with step("reading the data"):
                parsed_loss = losses.parse(loss)
                data_given = samples.parse(data, eval_data, context, parsed_loss, pad)
            refuse_epochs(sections, len(data_given), eval_data is not None)
            check(program, {**sections, "data": {"kind": "arrays" if context is None else "tokens", **sections.get("data", {})}})
            with step("splitting the model"):
                described = as_layers(layers, model) if layers is not None else whole_model(model, options.get("forward"))
            _check_values(data_given, described, parsed_loss, options, sections)
            if layers is not None:
                options.setdefault("model", model)
            else:
                with step("splitting the model"):
                    described = split(model, data_given.example(), forward=options.get("forward"))
            with step("exporting the model"):
                export(described, loss, data_given.example(), setup.package, name=os.path.basename(folder), **options)
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
    wanted = {**manifest["config"].get("train", {}), **sections.get("train", {})}.get("steps")
    return wanted is not None and manifest["step"] >= wanted


def _ended_message(run: str) -> str:
    train = read_manifest(newest_checkpoint(run))["config"].get("train", {})
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
