"""Tokenizes all sources, chunk by chunk, in one process or several. An interrupted call leaves the chunks that are done."""

from __future__ import annotations

import collections
import ctypes
import multiprocessing
import os
import signal
import sys
import time
from concurrent import futures
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..errors import MotleyError
from .rendering import Renderer
from .sources import Chunk, Source
from .tokenized import COUNTS, LISTED, Limits, Tokenized, tokenized

_EVERY_S = 2.0
"""Between two lines of progress."""


class Totals(NamedTuple):
    """Of all chunks. `parts`: the files of the chunks, in order. `failed`: why sources were not read to their ends."""

    parts: List[str]
    counts: Dict[str, int]
    kinds: Dict[str, str]
    errors: List[str]
    failed: List[str]


def tokenize(sources: List[Source], renderer: Renderer, limits: Limits, folder: str, key: str, processes: int,
             follow: Callable[[str], None]) -> Totals:
    """`folder`: of the chunks' files. `key`: a hash of all settings; chunks of an earlier call with the same key and content are used."""
    totals = Totals([], dict.fromkeys(COUNTS, 0), {}, [], [])
    progress = _Progress(sources, follow)
    with _Workers(renderer, limits, processes) as workers:
        for path, made, consumed, failed in _parts(sources, workers, folder, key):
            if failed is not None:
                totals.failed.append(failed)
            totals = _added(totals, path, made)
            progress.report(totals, consumed)
    return totals


_Part = Tuple[str, Tokenized, int, Optional[str]]
"""A chunk's file, its content, the bytes or rows of all sources up to it, and why its source ends there."""


def _parts(sources: List[Source], workers: "_Workers", folder: str, key: str) -> Iterator[_Part]:
    """In the order of the sources, with few chunks in memory at a time."""
    waiting: Deque[Tuple[str, Optional[Tokenized], Any, int, Optional[str]]] = collections.deque()
    before = number = 0
    for source in sources:
        for chunk in source.chunks():
            path = os.path.join(folder, f"{number:07d}-{key[:16]}-{chunk.digest()}.npz")
            found = _found(path)
            waiting.append((path, found, None if found is not None else workers.start(chunk), before + chunk.end, chunk.failed))
            number += 1
            while len(waiting) > workers.ahead:
                yield _finished(*waiting.popleft())
        before += source.size
    while waiting:
        yield _finished(*waiting.popleft())


def _found(path: str) -> Optional[Tokenized]:
    """What an interrupted call left; None if there is nothing, or if it is damaged, e.g. by a failure of power."""
    try:
        return Tokenized.read(path)
    except FileNotFoundError:
        return None
    except Exception:  # zipfile, zlib and numpy raise many kinds for damaged bytes
        return None


def _finished(path: str, found: Optional[Tokenized], started: Any, consumed: int, failed: Optional[str]) -> _Part:
    made = found
    if made is None:
        made = started()
        made.write(path)
    return path, made, consumed, failed


def _added(totals: Totals, path: str, made: Tokenized) -> Totals:
    for name, count in made.counts.items():
        totals.counts[name] += count
    for kind, place in made.kinds.items():
        totals.kinds.setdefault(kind, place)
    totals.errors.extend(made.errors[:max(0, LISTED - len(totals.errors))])
    totals.parts.append(path)
    return totals


class _Workers:
    """Processes that tokenize chunks; with one, this process does."""

    def __init__(self, renderer: Renderer, limits: Limits, processes: int):
        self._renderer, self._limits = renderer, limits
        self._pool: Optional[futures.ProcessPoolExecutor] = None
        self.ahead = 0
        if processes > 1:
            methods = multiprocessing.get_all_start_methods()  # a script without `if __name__ == "__main__"` would run again by spawn
            context = multiprocessing.get_context("fork" if "fork" in methods else None)
            self._pool = futures.ProcessPoolExecutor(processes, context, _begin, (renderer, limits, os.getpid()))
            self.ahead = processes + 1

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *failed: Any) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)  # a chunk for each process

    def start(self, chunk: Chunk) -> Callable[[], Tokenized]:
        """Returns a function that waits for the result."""
        if self._pool is None:
            return lambda: tokenized(chunk, self._renderer, self._limits)
        try:
            future = self._pool.submit(_tokenized, chunk)
        except futures.process.BrokenProcessPool as error:
            raise MotleyError(_KILLED) from error

        def result() -> Tokenized:
            try:
                return future.result()
            except futures.process.BrokenProcessPool as error:
                raise MotleyError(_KILLED) from error

        return result


_KILLED = "a process that tokenizes was killed, perhaps for its memory. Pass fewer processes=; the same call continues"

_own: List[Any] = []
"""Renderer and limits of a worker process."""


def _begin(renderer: Renderer, limits: Limits, first: int) -> None:
    """`first`: the first process. If it is killed, this one ends too, which else would hold the lock of the folder for ever."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))
        if os.getppid() != first:
            os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the first process, which ends the others
    _own[:] = [renderer, limits]


def _tokenized(chunk: Chunk) -> Tokenized:
    return tokenized(chunk, *_own)


class _Progress:
    """Lines with records, tokens and the remaining time, every few seconds."""

    def __init__(self, sources: List[Source], follow: Callable[[str], None]):
        self._follow = follow
        self._size = sum(source.size for source in sources) if all(source.size for source in sources) else 0
        self._start = self._last = time.monotonic()

    def report(self, totals: Totals, consumed: int) -> None:
        now = time.monotonic()
        if now - self._last < _EVERY_S:
            return
        self._last = now
        counts, spent = totals.counts, now - self._start
        share = ""
        if self._size and consumed:
            left = int(spent * (self._size - consumed) / consumed)
            share = f"  {100 * consumed // self._size} %  ETA {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d}"
        errors = f"  {counts['errors']:,} errors" if counts["errors"] else ""
        self._follow(f"text  {counts['records']:,} records  {counts['tokens']:,} tokens  {counts['tokens'] / spent:,.0f} tokens/s{share}{errors}")
