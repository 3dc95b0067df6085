"""`motley.train`: export, write data, start Motley, follow it."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch

from . import data as samples
from . import losses, probe
from .errors import MotleyError, step
from .export import export
from .layers import Call, Layers, as_layers
from .load import load
from .manifest import has_checkpoint, newest_checkpoint, read_manifest
from .named import Limit
from .settings import OF_EXPORT, Sections, check, sections_of, take_epochs, toml
from .setup import Setup
from .split import split
from .split.whole_trace import whole_model

Path = Union[str, "os.PathLike[str]"]

_REFUSED = 3
"""The status of a configuration that Motley does not take (docs/exit-status.md)."""


class Run(NamedTuple):
    """A training that ended well."""

    run: str
    """Its folder: metrics, report, checkpoints."""
    package: str
    config: str

    def state_dict(self) -> Dict[str, torch.Tensor]:
        """What the model has learned; see `motley.load`."""
        return load(self.run, self.package)


def train(model: torch.nn.Module, loss: Any, data: Any, cluster: Optional[Path] = None, *, eval_data: Any = None,
          layers: Optional[Union[Layers, Iterable[Tuple[str, Call]]]] = None, context: Optional[int] = None,
          run: Optional[Path] = None, resume: bool = False, allow_changes: bool = False, links: Optional[Path] = None,
          adapt: bool = False, motley: Optional[Path] = None, base: Optional[str] = None, pad: Optional[Mapping[str, Any]] = None, export_options: Optional[Dict[str, Any]] = None,
          follow: Callable[[str], None] = print, **settings: Any) -> Run:
    """Trains `model` with Motley, on this machine or on the machines of a cluster file, and returns when it has ended.

    loss, layers  as for `motley.export`; without `layers` they are those of `motley.split` with a sample of the data
    data          (inputs, targets) as tensors or arrays, a dataset of such pairs, or a row of tokens, which needs `context`. Several inputs
                  are a dictionary of their names; without targets beside it, those are its "labels"
    cluster       docs/formats/cluster.md; RUN.setup must be under the same path on its machines, shared or copied: the package on all
                  of them, the data on the one that gets the first layers
    run           the run folder; what is written for it (package, data, configuration) goes to RUN.setup
    resume        go on with the run from its newest checkpoint, with the package and the data that were written for it then;
                  settings that are given take the place of all of then. Those that change the run's numbers are refused but
                  with `allow_changes`. A run that has ended is left as it is
    adapt         move the layers to where the run's own steps show that they run faster
    motley        the program; without it the one on PATH
    base          of `motley.export`: "int8", "int4" or "nf4" for the frozen weights of linear layers
    pad           values with which samples of unequal length are filled up at their end, by the names of inputs and target, such as
                  {"input_ids": 0, "attention_mask": 0, "labels": -100}. Without it such samples are refused
    follow        is called with each line that Motley prints
    links         what `motley probe --output` wrote: how fast the links of the cluster are
    export_options
                  of `motley.export`: forward, input_limit, target_limit, decayed, files, unit, units_per_sample; they may also stand beside
                  the settings
    settings      keys of `[train]`, such as steps=1000, lr=1e-3, global_batch=64; keys of other sections with two underscores,
                  such as data__holdout=0.2 or run__threads=4 (docs/formats/config.md)

    The model itself does not change: `model.load_state_dict(run.state_dict())` takes over what was learned. Ctrl-C, or SIGINT to
    this process, lets Motley finish its step and save, and raises KeyboardInterrupt then.
    """
    if not isinstance(model, torch.nn.Module):
        raise MotleyError(f"the model is a {type(model).__name__}. Give a torch.nn.Module, and then the loss and the data")
    with step("reading the arguments"):
        program = _program(motley)
        folder = os.path.abspath(os.fspath(run) if run is not None else time.strftime(f"runs/{type(model).__name__}-%Y%m%d-%H%M%S"))
        options = {**(export_options or {}), **{key: settings.pop(key) for key in OF_EXPORT if key in settings}}
        options.update({"base": base} if base is not None else {})
        sections = sections_of(settings, folder)
        words = ["--cluster", os.fspath(cluster)] if cluster is not None else []
        words += ["--links", os.fspath(links)] if links is not None else []
    with Setup(folder, resume) as setup:
        if resume:
            take_epochs(sections, None, False)
            if settings:
                sections = setup.merged(sections)
                check(program, sections)
            if _has_ended(folder, sections):
                follow(_how_it_goes_on(folder))
                return Run(folder, setup.package, setup.config)
        else:
            with step("looking at the data"):
                understood = losses.understand(loss)
                data_given = samples.understand(data, eval_data, context, understood, pad)
            take_epochs(sections, len(data_given), eval_data is not None)
            check(program, {**sections, "data": {"kind": "arrays" if context is None else "tokens", **sections.get("data", {})}})
            with step("taking the model apart"):
                described = as_layers(layers, model) if layers is not None else whole_model(model, options.get("forward"))
            _check_values(data_given, described, understood, options, sections)
            if layers is not None:
                options.setdefault("model", model)
            else:
                with step("taking the model apart"):
                    described = split(model, data_given.example(), forward=options.get("forward"))
            with step("exporting the model"):
                export(described, loss, data_given.example(), setup.package, name=os.path.basename(folder), **options)
            with step(f"writing the data to {setup.folder}"):
                setup.keep_data(data_given)
            sections = setup.merged(sections)
        if settings or not resume:
            setup.write(toml(sections))
        command = [program, "launch" if cluster is not None else "train", setup.config] + words
        command += ["--adapt"] if adapt else []
        command += ["--resume"] if resume else []
        command += ["--allow-changes"] if resume and allow_changes else []
        try:
            _follow(command, follow)
        except Refused:
            setup.take_back()
            raise
    return Run(folder, setup.package, setup.config)


def _check_values(data: Union[samples.Arrays, samples.Tokens], described: Layers, loss: losses.Loss, options: Dict[str, Any],
                  sections: Sections) -> None:
    """Refuses data that the model does not accept before the export, which may take minutes."""
    with step("looking at what the model takes"):
        found = probe.limits(described, loss, data.example())
    finite = sections.get("data", {}).get("allow_nonfinite") is not True
    with step("looking at the data"):
        data.check(_limits(options.get("input_limit"), found.inputs), options.get("target_limit", found.targets), loss.ignored, finite)


def _limits(given: Limit, found: Limit) -> Limit:
    """Limits of the caller in place of those that the model shows."""
    if isinstance(given, Mapping) and isinstance(found, Mapping):
        return {**found, **given}
    return found if given is None else given


def _program(given: Optional[Path]) -> str:
    found = shutil.which(os.fspath(given) if given is not None else "motley")
    if found is None:
        raise MotleyError(f"the program {os.fspath(given) if given is not None else 'motley'} is not found. Build it (README.md), and "
                          "put its folder on PATH or pass motley=")
    return found


def _has_ended(run: str, sections: Dict[str, Dict[str, Any]]) -> bool:
    """Whether the newest checkpoint is the last one that the run, or the settings given for it, ask for."""
    if not has_checkpoint(run):
        return False
    manifest = read_manifest(newest_checkpoint(run))
    wanted = {**manifest["config"].get("train", {}), **sections.get("train", {})}.get("steps")
    return wanted is not None and manifest["step"] >= wanted


def _how_it_goes_on(run: str) -> str:
    train = read_manifest(newest_checkpoint(run))["config"].get("train", {})
    schedule = train.get("schedule")
    words = f"{run} has ended, after {train.get('steps')} steps; more steps= goes on with it"
    if schedule == "constant" or train.get("schedule_steps"):
        return words
    return words + f", with allow_changes=True: the learning rate of schedule={schedule!r} depends on the number of steps"


class Refused(MotleyError):
    """Motley did not take the configuration; nothing was started."""


def _follow(command: List[str], follow: Callable[[str], None]) -> None:
    """Motley runs in its own session, so that an interrupt of this process reaches it exactly once. Its lines are read to the
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
        raise KeyboardInterrupt("Motley was interrupted; where it had saved a checkpoint, the same call with resume=True goes on")
    if process.returncode != 0:
        end = (f"ended with status {process.returncode} (docs/exit-status.md)" if process.returncode > 0
               else f"was killed by signal {-process.returncode} ({signal.strsignal(-process.returncode)})")
        said = f"`{' '.join(command)}` {end}. Its last lines:\n" + "\n".join(last)
        if process.returncode != _REFUSED:
            raise MotleyError(said)
        raise Refused(said + ("\nIn Python --allow-changes is allow_changes=True" if "--allow-changes" in "\n".join(last) else ""))


def _ends_with_this_process() -> Optional[Callable[[], object]]:
    """The function by which a child process requests a signal when this process dies; Linux only."""
    if sys.platform != "linux":
        return None
    c_library = ctypes.CDLL(None)  # found before the fork, after which little is safe
    set_parent_death_signal = 1
    return lambda: c_library.prctl(set_parent_death_signal, int(signal.SIGTERM))
