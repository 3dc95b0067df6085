"""`motley.train`: export, write data, start Motley, follow it."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

import torch

from . import data as samples
from .errors import MotleyError
from .export import export
from .layers import Call, Layers
from .load import load
from .split import split

Path = Union[str, "os.PathLike[str]"]


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
          run: Optional[Path] = None, resume: bool = False, links: Optional[Path] = None, motley: Optional[Path] = None,
          export_options: Optional[Dict[str, Any]] = None, follow: Callable[[str], None] = print, **settings: Any) -> Run:
    """Trains `model` with Motley, on this machine or on the machines of a cluster file, and returns when it has ended.

    loss, layers  as for `motley.export`; without `layers` they are `motley.split(model)`
    data          (inputs, targets) as tensors or arrays, a dataset of such pairs, or a row of tokens, which needs `context`
    cluster       docs/formats/cluster.md; all its machines must see the run folder and what lies beside it
    run           the run folder; what is written for it (package, data, configuration) goes to RUN.setup
    resume        go on with the run from its newest checkpoint, with the package and the data that were written for it then;
                  settings that are given take the place of all of then, as far as the run can change them
    motley        the program; without it the one on PATH
    follow        is called with each line that Motley prints
    links         what `motley probe --output` wrote: how fast the links of the cluster are
    settings      keys of `[train]`, such as steps=1000, lr=1e-3, global_batch=64; keys of other sections with two underscores,
                  such as data__holdout=0.2 or run__threads=4 (docs/formats/config.md)

    The model itself does not change: `model.load_state_dict(run.state_dict())` takes over what was learned. Ctrl-C, or SIGINT to
    this process, lets Motley finish its step and save, and raises KeyboardInterrupt then.
    """
    program = _program(motley)
    folder = os.path.abspath(os.fspath(run) if run is not None else time.strftime(f"runs/{type(model).__name__}-%Y%m%d-%H%M%S"))
    setup = folder + ".setup"
    config, package = os.path.join(setup, "motley.toml"), os.path.join(setup, "model.motley")
    sections = _sections(settings, folder)
    if resume:
        if not os.path.isfile(config):
            raise MotleyError(f"there is nothing to resume: {config} is missing. Leave out resume=, or name the run")
    elif os.path.isdir(folder) and os.listdir(folder):
        raise MotleyError(f"there is a run in {folder}. Go on with it by resume=True, or choose another run=")
    else:
        given = samples.understand(data, eval_data, context)
        _check(program, sections, "arrays" if context is None else "tokens")
        options = dict(export_options or {})
        if layers is not None:
            options.setdefault("model", model)
        export(layers if layers is not None else split(model), loss, given.example(), package,
               name=os.path.basename(folder), **options)
        _write_json(os.path.join(setup, "data.json"), given.write(os.path.join(setup, "data")))
    data_section = os.path.join(setup, "data.json")
    if os.path.isfile(data_section) and (settings or not resume):
        with open(data_section, encoding="utf-8") as file:
            written = {"model": {"kind": "package", "path": package}, "data": json.load(file)}
        sections = {name: {**written.get(name, {}), **sections.get(name, {})} for name in {**written, **sections}}
        with open(config, "w", encoding="utf-8") as file:
            file.write(_toml(sections))
    command = [program, "launch" if cluster is not None else "train", config]
    command += ["--cluster", os.fspath(cluster)] if cluster is not None else []
    command += ["--links", os.fspath(links)] if links is not None else []
    command += ["--resume"] if resume else []
    _follow(command, follow)
    return Run(folder, package, config)


def _program(given: Optional[Path]) -> str:
    found = shutil.which(os.fspath(given) if given is not None else "motley")
    if found is None:
        raise MotleyError(f"the program {os.fspath(given) if given is not None else 'motley'} is not found. Build it (README.md), and "
                          "put its folder on PATH or pass motley=")
    return found


def _sections(settings: Dict[str, Any], folder: str) -> Dict[str, Dict[str, Any]]:
    """The configuration that they make, but for model and data."""
    sections: Dict[str, Dict[str, Any]] = {"run": {"dir": folder}}
    for key, value in settings.items():
        section, _, name = key.rpartition("__")
        sections.setdefault(section or "train", {})[name] = value
    _toml(sections)  # refuses what cannot stand there before anything is written
    return sections


def _check(program: str, sections: Dict[str, Dict[str, Any]], kind: str) -> None:
    """Settings that Motley would refuse are found before anything is exported."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(_toml({**sections, "data": {"kind": kind, **sections.get("data", {})}}))
        file.flush()
        done = subprocess.run([program, "config", file.name], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if done.returncode != 0:
            raise MotleyError(f"Motley refuses the settings:\n{done.stderr.replace(file.name, 'settings')}")


def _follow(command: List[str], follow: Callable[[str], None]) -> None:
    """Motley is in a session of its own, so that an interruption reaches it once, by whatever way it came to this process; its
    lines are followed to the end."""
    last: List[str] = []
    interrupted = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True, preexec_fn=_ends_with_this_process()) as process:
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
        raise MotleyError(f"`{' '.join(command)}` ended with status {process.returncode} (docs/exit-status.md). Its last lines:\n"
                          + "\n".join(last))


def _ends_with_this_process() -> Optional[Callable[[], object]]:
    """What a child calls so as to be asked to end when this process is gone, however that came; Linux knows it."""
    if sys.platform != "linux":
        return None
    c_library = ctypes.CDLL(None)  # found before the fork, after which little is safe
    set_parent_death_signal = 1
    return lambda: c_library.prctl(set_parent_death_signal, int(signal.SIGTERM))


def _write_json(path: str, value: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file)


def _toml(sections: Dict[str, Dict[str, Any]]) -> str:
    lines = []
    for section, keys in sections.items():
        lines.append(f"[{section}]")
        for key, value in keys.items():
            if not isinstance(value, (bool, int, float, str, list, tuple)):
                raise MotleyError(f"{section}.{key} is a {type(value).__name__}. Settings are numbers, texts, booleans or lists of them")
            lines.append(f"{key} = {json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"
