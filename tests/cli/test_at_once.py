"""Several commands at one time, as real processes: the newest sources win, nothing is torn."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Timer

import pytest

from kerngen.compiler import CompiledModule, Compiler
from kerngen.format import files as files_of_formatting
from kerngen.output import lock
from kerngen.output.lock import locked_folder
from tests.cli.sample import OUT, SCALE, SOURCE, Run, edit, files

pytestmark = pytest.mark.usefixtures("project")

KERNGEN = (sys.executable, "-m", "kerngen.cli")
FORMATTED = SCALE.replace("{ ", "{\n    ").replace("; }", ";\n}")
NEWER = SCALE.replace("k * x[i]", "k * x[i] + 1.0")


def build(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*KERNGEN, "build", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_build_that_another_overtakes_begins_again(
    kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reads the old text; before it writes, another has built the new one."""
    compile_file = Compiler.compile
    compiled: list[str] = []

    def overtaken(self: Compiler, name: str) -> CompiledModule:
        compiled.append(name)
        if len(compiled) == 1:
            edit(SOURCE / "scale.kern", NEWER)
            other = build()
            assert "written" in other.communicate()[0]
            assert other.returncode == 0
        return compile_file(self, name)

    monkeypatch.setattr(Compiler, "compile", overtaken)
    assert "0 files written" in kerngen("build").output
    assert "1.0" in (OUT / "wgsl" / "scale" / "scale.map.wgsl").read_text("utf-8")
    kerngen("build", "--check")


def test_who_waits_for_another_command_says_so_and_ends_by_ctrl_c() -> None:
    OUT.parent.mkdir()
    with locked_folder(OUT.parent):
        waiting = build()
        assert waiting.stdout is not None
        said = waiting.stdout.readline()
        waiting.send_signal(signal.SIGINT)
        assert "interrupted" in waiting.communicate(timeout=60)[0]
    assert "the folder 'gen': another kerngen command holds it" in said
    assert waiting.returncode == 130


@pytest.mark.parametrize(("arguments", "lines"), [((), 1), (("-q",), 0)])
def test_who_waits_says_so_once_unless_it_is_to_be_quiet(
    arguments: tuple[str, ...],
    lines: int,
    kerngen: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    OUT.parent.mkdir()
    with ExitStack() as held:
        held.enter_context(locked_folder(OUT.parent))

        def release_too_late(pause: float) -> None:
            time.sleep(lock.PATIENCE + pause)
            held.close()

        monkeypatch.setattr(lock, "sleep", release_too_late)
        stderr = kerngen("build", *arguments).stderr
    assert len(stderr.splitlines()) == lines


def test_nothing_is_said_where_another_is_done_in_a_moment(tmp_path: Path) -> None:
    told: list[Path] = []
    with ExitStack() as held:
        held.enter_context(locked_folder(tmp_path))
        Timer(lock.PATIENCE / 4, held.close).start()
        with locked_folder(tmp_path, told.append):
            assert told == []


@pytest.mark.nightly
def test_many_builds_of_files_and_folders_at_once_come_to_what_one_would(
    kerngen: Run,
) -> None:
    names = [f"k{number}" for number in range(6)]
    for name in names:
        edit(SOURCE / f"{name}.kern", SCALE.replace("scale", name))
    kerngen("build", "--out", "alone")
    for _ in range(3):
        running = [build(f"dsl/{name}.kern", "--out", "made") for name in names]
        running += [build("--out", "made") for _ in range(3)]
        outputs = [process.communicate()[0] for process in running]
        assert [process.returncode for process in running] == [0] * 9, outputs
        build("--out", "made").communicate()
        assert files(Path("made")) == files(Path("alone"))


def test_a_save_that_comes_before_the_formatted_text_stays(
    kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SOURCE / "scale.kern"
    format_data = files_of_formatting.format_data

    def saved_meanwhile(data: bytes, shown: str) -> files_of_formatting.Formatted:
        edit(file, NEWER)
        return format_data(data, shown)

    monkeypatch.setattr(files_of_formatting, "format_data", saved_meanwhile)
    assert "It was saved meanwhile" in kerngen("fmt", file, code=1).stderr
    assert file.read_text("utf-8") == NEWER


def test_what_a_killed_fmt_leaves_the_next_uses(kerngen: Run) -> None:
    edit(SOURCE / ".kerngen.tmp", "half a fi")
    kerngen("fmt")
    assert {path.name for path in SOURCE.iterdir()} == {"scale.kern", "deep"}


@pytest.mark.nightly
def test_files_are_whole_whenever_fmt_is_killed(kerngen: Run) -> None:
    names = [SOURCE / f"k{number}.kern" for number in range(200)]
    rng = random.Random(0)
    for _ in range(20):
        for file in names:
            edit(file, SCALE)
        formatting = subprocess.Popen([*KERNGEN, "fmt"], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1.0))
        formatting.kill()
        formatting.wait()
        assert {file.read_text("utf-8") for file in names} <= {SCALE, FORMATTED}
    kerngen("fmt")
    assert {path.suffix for path in SOURCE.iterdir()} == {".kern", ""}


@pytest.mark.nightly
def test_many_formatters_at_once_come_to_what_one_would(kerngen: Run) -> None:
    for number in range(100):
        edit(SOURCE / f"k{number}.kern", SCALE)
    running = [
        subprocess.Popen([*KERNGEN, "fmt"], stdout=subprocess.PIPE) for _ in range(4)
    ]
    for process in running:
        process.communicate()
    kerngen("fmt", "--check")


IMPORTS = """
import importlib, os, sys
from kerngen.runtime.errors import AbiError
sys.path.insert(0, "gen")
refused = 0
while os.path.exists("go"):
    try:
        import kernels.scale
    except AbiError as error:
        # Python had read the module before the build wrote it, and its plan after it.
        refused += 1
        assert refused < 3 and "import it again" in str(error), (refused, str(error))
    else:
        refused = 0
        assert kernels.scale.scale.__name__ == "scale"
    for name in [name for name in sys.modules if name.startswith("kernels")]:
        del sys.modules[name]
    importlib.invalidate_caches()
"""


@pytest.mark.nightly
def test_what_is_built_while_it_is_imported_can_be_imported_again(kerngen: Run) -> None:
    kerngen("build")
    go = Path("go")
    go.touch()
    importing = subprocess.Popen(
        [sys.executable, "-c", IMPORTS], stderr=subprocess.PIPE, text=True
    )
    for turn in range(30):
        edit(SOURCE / "scale.kern", (SCALE, NEWER)[turn % 2])
        kerngen("build")
    go.unlink()
    _, errors = importing.communicate()
    assert (importing.returncode, errors) == (0, "")
