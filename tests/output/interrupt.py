"""Interrupts a write at every point where it touches the disk; run as a script.

    python interrupt.py {kill|fail|save|save_kill} {exchange|in_place} FOLDER [EVERY]

Python announces each operation on the file system to audit hooks.  For n = 1, 2, ... a
forked child writes the new files over the old ones and is stopped at its n-th operation
(or at each so-manieth alone):
killed by SIGKILL, or failed by an OSError; or there a user saves a file in the way of
editors, and then nothing stops it, or a kill does at once.  For each n one line of JSON says
how it ended, what the folder held right after, what it holds once the next command has
taken its lock, and what then lies beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

from kerngen.output import transaction
from kerngen.output.files import Generated
from kerngen.output.transaction import Changes, locked
from kerngen.output.write import write

OLD = [
    Generated("dsl/a.kern", "1", {"a.py": b"old a", "wgsl/a.k.wgsl": b"old shader"}),
    Generated("dsl/gone.kern", "1", {"sub/gone.py": b"old", "wgsl/gone.wgsl": b"old"}),
]
NEW = [
    Generated("dsl/a.kern", "2", {"a.py": b"new a", "wgsl/a.k.wgsl": b"new shader"}),
    Generated("dsl/b.kern", "2", {"b.py": b"new b", "deep/b.wgsl": b"new"}),
]
WATCHED = {
    "ctypes.dlsym", "open", "os.chmod", "os.link", "os.listdir", "os.mkdir",
    "os.remove", "os.rename", "os.rmdir", "os.scandir", "os.utime",
}  # fmt: skip


FAILED, COPED = 28, 29
"""How a child ends that raised, and one that found another way."""


def no_exchange(changes: Changes, out: Path, staging: Path) -> bool:
    """Stand in for a system that can't exchange folders."""
    assert changes
    assert out != staging
    return False


def keep_none(source: str) -> bool:
    """Rebuild every source."""
    assert source
    return False


class Interruption:
    """Does what is listed, one at each operation from the `point`-th on."""

    def __init__(self, point: int, stops: Sequence[Callable[[], None]]) -> None:
        self.left = point
        self.stops = list(stops)
        self.stopping = False
        sys.addaudithook(self.watch)

    def watch(self, event: str, arguments: tuple[object, ...]) -> None:
        del arguments
        if event not in WATCHED or self.stopping:
            return
        self.left -= 1
        if self.left <= 0 and self.stops:
            self.stopping = True
            self.stops.pop(0)()
            self.stopping = False


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise OSError(28, "No space left on device")


def save(out: Path) -> None:
    """Save a file as editors do, who write another and rename it."""
    draft = out.parent / "draft"
    draft.write_text("saved", encoding="utf-8")
    draft.replace(out / "notes" / "mine.txt")


def write_new(out: Path, point: int, how: str) -> int:
    """Write in a child; return 0 if it was never interrupted, else how it ended."""
    stops: dict[str, list[Callable[[], None]]] = {
        "kill": [kill_self],
        "fail": [fail],
        "save": [partial(save, out)],
        "save_kill": [partial(save, out), kill_self],
    }
    child = os.fork()
    if child == 0:
        interruption = Interruption(point, stops[how])
        try:
            write(NEW, out, keep=keep_none)
        except OSError:
            os._exit(FAILED)
        os._exit(COPED if interruption.left <= 0 else 0)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def holds(out: Path) -> dict[str, str]:
    """Every file below a folder, with its text."""
    return {
        file.relative_to(out).as_posix(): file.read_text("utf-8")
        for file in sorted(out.rglob("*"))
        if file.is_file()
    }


def main(how: str, way: str, folder: str, every: str = "1") -> None:
    """Interrupt at every point, until a write runs to its end."""
    if way == "in_place":
        patch.object(transaction, "swap_folder", no_exchange).start()
    for point in range(1, 1000, int(every)):
        out = Path(folder) / "out"
        shutil.rmtree(folder)
        (out / "notes").mkdir(parents=True)
        (out / "notes" / "mine.txt").write_text("mine", encoding="utf-8")
        write(OLD, out, keep=keep_none)
        code = write_new(out, point, how)
        at_once = holds(out)
        with locked(out):
            later = holds(out)
        beside = sorted(path.name for path in Path(folder).iterdir())
        print(json.dumps([code, at_once, later, beside]))
        if code == 0:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
