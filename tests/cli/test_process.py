"""The command as a process of its own: what it imports, how it prints, how it dies."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.sample import OUT, SCALE, SOURCE, TOTAL, WRONG, Run, edit, files
from tests.cli.terminal import on_a_terminal

pytestmark = pytest.mark.usefixtures("project")

KERNGEN = (sys.executable, "-m", "kerngen")


def run(
    *arguments: str, code: int = 0, environment: Mapping[str, str] | None = None
) -> str:
    """Run the command; return what it printed to both streams."""
    done = subprocess.run(
        [*KERNGEN, *arguments],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == code, done.stdout
    return done.stdout


def imported_by(*arguments: str) -> set[str]:
    """The top-level packages that a successful command imports."""
    program = (
        "import sys\n"
        "from kerngen.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        "    assert end.code == 0, end.code\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return set(done.stdout.splitlines()[-1].split())


def test_a_build_with_nothing_changed_imports_no_compiler() -> None:
    edit(SOURCE / "tuned.kern", 'use "scale.kern";\nschedule scale { map }\n')
    modules = imported_by("build")
    assert "lark" in modules
    assert not {"wgpu", "kerngen.runtime"} & modules
    modules = imported_by("build")
    assert not {"lark", "black", "numpy", "wgpu", "kerngen.compiler"} & modules


@pytest.mark.parametrize(
    ("folder", "environment"),
    [
        pytest.param(
            *("a", {"PYTHONHASHSEED": "1", "LC_ALL": "C"}), marks=pytest.mark.nightly
        ),
        pytest.param(
            "other place",
            {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"},
            marks=pytest.mark.nightly,
        ),
        ("a/b/c", {"PYTHONHASHSEED": "3", "LANG": "tr_TR.UTF-8", "PYTHONUTF8": "0"}),
    ],
)
def test_output_is_the_same_anywhere(
    folder: str, environment: dict[str, str], tmp_path: Path, kerngen: Run
) -> None:
    edit(SOURCE / "greek.kern", f"/// Größe, café.\n{SCALE}")
    edit(SOURCE / "tuned.kern", 'use "deep/total.kern";\nschedule total { reduce }\n')
    kerngen("build")
    other = tmp_path / folder
    other.mkdir(parents=True)
    for name in ("greek.kern", "scale.kern", "deep/total.kern", "tuned.kern"):
        edit(other / "dsl" / name, (SOURCE / name).read_text("utf-8"))
    made = other / "made"
    run("build", str(other / "dsl"), "--out", str(made), environment=environment)
    assert files(made) == files(OUT)


@pytest.mark.nightly
@pytest.mark.parametrize("folder", ["one", "another"])
def test_a_projects_folder_may_be_called_anything(folder: str, tmp_path: Path) -> None:
    project = tmp_path / folder
    edit(project / "pyproject.toml", '[tool.kerngen]\nsource = "."\nout = "made"\n')
    edit(project / "scale.kern", SCALE)
    subprocess.run([*KERNGEN, "build"], check=True, cwd=project, capture_output=True)
    assert folder not in (project / "made" / "manifest.json").read_text("utf-8")
    assert "from scale.kern (" in (project / "made" / "scale.py").read_text("utf-8")


def test_colours_and_progress_on_a_terminal_and_plain_text_in_a_pipe() -> None:
    edit(SOURCE / "wrong.kern", WRONG)
    shown = on_a_terminal(*KERNGEN, "build")
    assert "\x1b[1;31merror" in shown
    assert "Compiling" in shown
    piped = run("build", code=1)
    assert "\x1b" not in piped
    assert "Compiling" not in piped


@pytest.mark.nightly
def test_no_colours_on_a_terminal_that_wants_none() -> None:
    edit(SOURCE / "wrong.kern", WRONG)
    assert "\x1b[1;31m" not in on_a_terminal(*KERNGEN, "check", NO_COLOR="1")


@pytest.mark.nightly
def test_no_progress_in_a_pipe() -> None:
    forced = {"FORCE_COLOR": "1"}
    assert "Compiling" not in run("build", "--out", "other", environment=forced)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("check - <&-", 2),
        ("build >&- 2>&-", 0),
        pytest.param("fmt - >&-", 1, marks=pytest.mark.nightly),
        pytest.param("show lost 2>&-", 1, marks=pytest.mark.nightly),
    ],
)
def test_closed_streams_are_no_bug(command: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {shlex.join(KERNGEN)} {command}"],
        check=False,
        capture_output=True,
        text=True,
        input=SCALE,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == code


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = f"{shlex.join(KERNGEN)} explain | head -n 1"
    done = subprocess.run(
        ["sh", "-c", program], check=True, capture_output=True, text=True
    )
    assert (done.stderr, done.stdout.count("\n")) == ("", 1)


@pytest.mark.nightly
def test_without_a_home_and_in_a_narrow_terminal() -> None:
    narrow = {"COLUMNS": "20", "HOME": "/nowhere", "TERM": "dumb", "NO_COLOR": "1"}
    assert "no errors." in run("check", environment=narrow)


@pytest.mark.parametrize(
    ("how", "attempts"),
    [
        pytest.param("SIGKILL", 100, marks=pytest.mark.nightly),
        pytest.param("SIGINT", 40, marks=pytest.mark.nightly),
    ],
)
def test_killed_at_any_time_a_build_leaves_the_old_output_or_the_new(
    how: str,
    attempts: int,
) -> None:
    """Kill real builds after random delays, with the real compiler at work."""
    versions = [SCALE, SCALE.replace("k * x[i]", "k * x[i] + 1.0")]
    wanted: list[dict[str, bytes]] = []
    took = 0.0
    for version in versions:
        edit(SOURCE / "scale.kern", version)
        start = time.monotonic()
        run("build")
        wanted.append(files(OUT))
        took = time.monotonic() - start
    rng = random.Random(0)
    for attempt in range(attempts):
        edit(SOURCE / "scale.kern", versions[attempt % 2])
        edit(SOURCE / "deep" / "total.kern", TOTAL)
        process = subprocess.Popen([*KERNGEN, "build"], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 1.1) * took)
        process.send_signal(signal.Signals[how])
        process.wait()
        assert files(OUT) in wanted
    run("build")
    assert files(OUT) == wanted[(attempts - 1) % 2]
    assert [path.name for path in OUT.parent.iterdir()] == ["kernels"]
