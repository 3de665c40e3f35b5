"""Worker processes that compile the files of a build.

Each compiles one file after the other and sends back the generated files.  It writes
nothing to the disk, ignores Ctrl-C, and ends when the build's process does, even if that is
killed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import TypeAlias, cast, final

from kerngen.cli.arguments.targets import DEFAULT, Targets
from kerngen.cli.compiled import Compiled, compiled_file
from kerngen.compiler import Compiler
from kerngen.output.errors import OutputError
from kerngen.syntax.library import Library

_Ours: TypeAlias = "Connection[str, Compiled | None]"
_Theirs: TypeAlias = "Connection[Compiled | None, str]"

_LINUX = sys.platform == "linux"
_PROCESS = get_context("fork").Process if _LINUX else get_context("spawn").Process
"""A forked process has all modules; where a fork isn't safe, each imports its own."""


@final
@dataclass(frozen=True, slots=True)
class _Worker:
    process: BaseProcess
    pipe: _Ours


@contextmanager
def workers(
    library: Library, number: int, targets: Targets = DEFAULT
) -> Generator[Workers]:
    """Run worker processes for the duration of a block.

    They get the texts that the library has read, so that all compile the same sources.
    """
    started: list[_Worker] = []
    try:
        with _interrupts_held():
            started.extend(_start(library, targets) for _ in range(number))
        yield Workers(tuple(started))
    finally:
        for worker in started:
            worker.process.kill()
        for worker in started:
            worker.process.join()


@final
@dataclass(frozen=True, slots=True)
class Workers:
    """Processes that wait for files to compile."""

    members: tuple[_Worker, ...]

    def compile(self, names: Iterable[str]) -> Iterator[tuple[str, Compiled | None]]:
        """Yield each file when it is compiled; None if it has errors.

        Raises `OutputError` if a process dies.
        """
        waiting = iter(names)
        busy: dict[_Worker, str] = {}

        def occupy(worker: _Worker) -> None:
            for name in waiting:
                busy[worker] = name
                with suppress(OSError):  # it died: `_received` will raise
                    worker.pipe.send(name)
                return

        for worker in self.members:
            occupy(worker)
        while busy:
            ready = wait([worker.pipe for worker in busy])
            for worker in [worker for worker in busy if worker.pipe in ready]:
                name = busy.pop(worker)
                result = _received(worker, name)
                occupy(worker)
                yield name, result


def _received(worker: _Worker, name: str) -> Compiled | None:
    try:
        return worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        raise OutputError(
            f"The process that compiled '{name}' was ended (exit code "
            f"{worker.process.exitcode}), and nothing is written. If memory is short, "
            f"build with '--jobs 1'."
        ) from None


@contextmanager
def _interrupts_held() -> Generator[None]:
    """Block SIGINT in a block that starts processes, which inherit that.

    A Ctrl-C in the meantime interrupts the build after the block.
    """
    if sys.platform == "win32":
        yield  # processes there begin to ignore it themselves
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(library: Library, targets: Targets) -> _Worker:
    # Windows' class has another name, and the same methods.
    ours, theirs = cast("tuple[_Ours, _Theirs]", Pipe())
    process = _PROCESS(target=_work, args=(theirs, library, targets), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _work(pipe: _Theirs, library: Library, targets: Targets) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_build, daemon=True).start()
    compiler = Compiler(library, targets=targets)
    with suppress(EOFError, OSError):  # the build is over
        while True:
            pipe.send(_attempt(compiler, pipe.recv()))


def _end_with_the_build() -> None:
    build = parent_process()
    assert build is not None, "the build started this process"
    build.join()
    os._exit(1)


def _attempt(compiler: Compiler, name: str) -> Compiled | None:
    try:
        return compiled_file(compiler, name)
    except Exception:  # noqa: BLE001 (the build compiles it again, and meets it itself)
        return None
