"""`kerngen watch`, and a program that takes up what it builds, as real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread

import pytest

from tests.project.tree import ROOT

from .sample import PYPROJECT, edit

SOURCE = "kernel scale(x: f32[n]) -> y: f32[n] {{ y[i] = {} * x[i]; }}\n"
PROGRAM = """
import sys, time
sys.path.insert(0, "gen")
import kerngen.runtime as gpu
from kernels.scale import scale

ctx = gpu.open(adapter="reference")
x = ctx.vector([1.0], gpu.f32)
while True:
    reloaded = gpu.reload()
    print(scale(x).numpy()[0], *reloaded, flush=True)
    time.sleep(0.05)
"""
PATIENCE = 60
"""Seconds; a test that passes takes few."""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are another matter")


class Running:
    """A process, and its lines as they come."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: Queue[str] = Queue()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))

    def until(self, wanted: str) -> list[str]:
        """Return the lines up to one that has the wanted words."""
        lines: list[str] = []
        while not lines or wanted not in lines[-1]:
            try:
                lines.append(self.lines.get(timeout=PATIENCE))
            except Empty:
                pytest.fail(f"{PATIENCE} s without '{wanted}', after {lines}")
        return lines

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(PATIENCE)


@contextmanager
def run(*words: str) -> Generator[Running]:
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        try:
            yield Running(process)
        finally:
            process.kill()


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    edit(tmp_path / "pyproject.toml", PYPROJECT)
    edit(tmp_path / "dsl" / "scale.kern", SOURCE.format("2.0"))
    edit(tmp_path / "program.py", PROGRAM)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "dsl" / "scale.kern"


def save_as_editors_do(file: Path, text: str) -> None:
    """Write beside the file, and rename: it is never half there."""
    draft = file.with_name(f".{file.name}.swp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(file)


def test_a_running_program_takes_up_what_is_saved(source: Path) -> None:
    with run("-m", "kerngen.cli", "watch") as watch:
        watch.until("Watching dsl")
        with run("program.py") as program:
            program.until("2.0")
            save_as_editors_do(source, SOURCE.format("3.0"))
            lines = watch.until("Watching dsl")
            assert lines[0].endswith("dsl/scale.kern changed")
            assert "written" in lines[1]
            assert program.until("3.0")[-1] == "3.0 kernels.scale"

            source.write_text(SOURCE.format("4.0").replace("x[i]", "x[j]"))
            assert any("error[KG" in line for line in watch.until("Watching dsl"))
            other = source.with_name("other.kern")
            other.write_text(SOURCE.format("1.0"))
            assert watch.until("Watching dsl")[0].endswith("dsl/other.kern added")
            other.unlink()
            assert watch.until("Watching dsl")[0].endswith("dsl/other.kern deleted")
            assert program.until("3.0")[-1] == "3.0", "the old kernels stay"

            source.write_text(SOURCE.format("5.0"))
            watch.until("Watching dsl")
            assert program.until("5.0")[-1] == "5.0 kernels.scale"
        assert watch.interrupt() == 0
        assert watch.until("Stopped.") == ["", "Stopped."], "no build was for its own"


@pytest.mark.nightly
def test_a_folder_that_comes_back_is_watched_again(source: Path) -> None:
    """A switch of branches takes folders away and brings others of their names."""
    with run("-m", "kerngen.cli", "watch") as watch:
        watch.until("Watching dsl")
        source.parent.rename("away")
        watch.until("does not exist")
        Path("away").rename(source.parent)
        watch.until("dsl is another folder than before")
        watch.until("Watching dsl")
        save_as_editors_do(source, SOURCE.format("3.0"))
        watch.until("written")
        assert "3.0" in Path("gen/kernels/scale.py").read_text("utf-8")
        assert watch.interrupt() == 0


@pytest.mark.nightly
def test_without_the_systems_watches_files_are_looked_at(source: Path) -> None:
    """Also those that the one which is built uses."""
    used = source.with_name("used.kern")
    used.write_text("fn twice(x: f32) -> f32 { 2.0 * x }\n", encoding="utf-8")
    source.write_text(
        'use "used.kern";\n'
        "kernel scale(x: f32[n]) -> y: f32[n] { y[i] = twice(x[i]); }\n",
        encoding="utf-8",
    )
    with run("-c", NO_WATCHES, "dsl/scale.kern") as watch:
        watch.until("OS file watch limit reached. Files are checked every second")
        save_as_editors_do(used, "fn twice(x: f32) -> f32 { x + x }\n")
        watch.until("dsl/used.kern changed")
        watch.until("written")
        source.unlink()
        watch.until("dsl/scale.kern deleted")
        assert watch.interrupt() == 0


NO_WATCHES = """
import sys
import watchfiles.main
from kerngen.cli import main
def limited(*_):
    raise OSError('OS file watch limit reached. about ["dsl"] (Error {})')
watchfiles.main.RustNotify = limited
main(["watch", *sys.argv[1:]], prog_name="kerngen")
"""


def test_ctrl_c_ends_it_during_a_build(source: Path) -> None:
    source.write_text(
        "".join(SOURCE.replace("scale", f"k{n}").format("2.0") for n in range(100))
    )
    with run("-X", "faulthandler", "-c", SLOW) as watch:
        watch.until("started")
        assert watch.interrupt() == 0


SLOW = """
from importlib import import_module
from kerngen.cli import main
watch = import_module("kerngen.cli.watch")
build = watch.build_sources
def slow(*arguments):
    print("started", flush=True)
    build(*arguments)
watch.build_sources = slow
main(["watch"], prog_name="kerngen")
"""
