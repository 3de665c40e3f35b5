"""Folders that hold what nobody expects there: refused or escaped, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from kerngen.compiler import CompiledModule, Compiler
from kerngen.source import reading
from tests.cli.sample import OUT, PYPROJECT, SCALE, SOURCE, TOTAL, Run, edit, files

pytestmark = [
    pytest.mark.usefixtures("project"),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files"),
]

ODD = SOURCE / "odd.kern"
STRUCT = "struct S { a: f32 }\n"
USER = 'use "a-b/s.kern";\nkernel k(s: S[n]) -> y: f32[n] { y[i] = s[i].a; }\n'


Make: TypeAlias = Callable[[Path], None]
"""Makes a file of some kind."""


def pipe(path: Path) -> None:
    os.mkfifo(path)


def plug(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        here = Path.cwd()
        os.chdir(path.parent)  # the path of a socket is short
        opened.bind(path.name)
        os.chdir(here)


def link(to: str) -> Make:
    def make(path: Path) -> None:
        path.symlink_to(to)

    return make


def holding(content: bytes) -> Make:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


REFUSED: dict[str, tuple[Make, str]] = {
    "pipe": (pipe, "not a regular file"),
    "socket": (plug, "odd.kern"),
    "endless device": (link("/dev/zero"), "not a regular file"),
    "empty device": (link("/dev/null"), "not a regular file"),
    "link to nothing": (link("nowhere.kern"), "No such file"),
    "link to itself": (link("odd.kern"), "Too many levels"),
    "link to a folder's pipe": (link("../pipe"), "not a regular file"),
    "no text": (holding(b"\xff"), "KG0001"),
    "too large": (holding(b"/" * (2**20 + 1)), "KG0009"),
}


OF_FOLDERS = (
    "build",
    "check",
    "fmt",
    "fmt --check",
    "show scale",
    "verify --examples 1",
)
OF_FILES = ("layout {}", "check {}", "fmt {}", "bench {} --quick --peers none")


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_source_is_refused(kind: str, kerngen: Run) -> None:
    make, message = REFUSED[kind]
    pipe(Path("pipe"))
    make(ODD)
    for command in OF_FOLDERS:
        if command.startswith("show") and message.startswith("KG"):
            kerngen(*command.split())  # a fault of another file is no fault of 'scale'
            continue
        assert message in kerngen(*command.split(), code=1).output, command
    for command in OF_FILES:
        output = kerngen(*command.format(ODD).split(), code=1).output
        assert (
            "error" in output.lower()
        ), command  # of a link, what it leads to is named
    assert not OUT.exists()


@pytest.mark.parametrize("command", ["build", "check", "fmt", "new other"])
def test_a_folder_that_is_gone(command: str, kerngen: Run) -> None:
    Path("gone").mkdir()
    os.chdir("gone")
    Path("../gone").rmdir()
    assert "No such file or directory" in kerngen(*command.split(), code=1).stderr


def test_one_that_another_uses_is_refused(kerngen: Run) -> None:
    pipe(ODD)
    edit(SOURCE / "user.kern", 'use "odd.kern";\n')
    assert "not a regular file" in kerngen("check", SOURCE / "user.kern", code=1).output


def test_links_to_folders_are_not_followed(kerngen: Run) -> None:
    edit(Path("outside/more.kern"), SCALE)
    (SOURCE / "circle").symlink_to(".")
    (SOURCE / "outside").symlink_to("../outside")
    (SOURCE / "folder.kern").mkdir()
    kerngen("build")
    assert {path for path in files(OUT) if path.endswith("/more.py")} == set()


def test_a_link_to_a_file_is_a_source(kerngen: Run) -> None:
    edit(Path("outside.kern"), SCALE)
    ODD.symlink_to("../outside.kern")
    kerngen("build")
    assert "odd.py" in files(OUT)


NAMES = (
    *("a b", "a\nb", "-x", "--help", "é", "日本", "a\u202eb", "a.b", "class", "None"),
    *("numpy", "kerngen", "con", "self", "__main__", "wgsl", "py.typed", "match"),
    *("<script>", '"', "]]>", "\\", "\u2028", "{x}", "[bold]x"),
)


def test_any_name_becomes_a_module(kerngen: Run) -> None:
    named = [f"dsl/d{n}/{name}.kern" for n, name in enumerate(NAMES)]
    for path in named:
        edit(Path(path), SCALE)
    kerngen("build")
    made = files(OUT)
    assert sum(path.endswith(".py") for path in made) >= len(NAMES)
    for path, text in made.items():
        folders = path.removesuffix(".py").split("/")
        if path.endswith(".py"):
            assert all(folder.isidentifier() for folder in folders)
            compile(text, path, "exec")
    sources = json.loads(made["manifest.json"])["sources"]
    assert {*named} <= sources.keys()
    assert all(not {*entry} - {"files", "sha256"} for entry in sources.values())


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("a-b", "a_b", "both generate 'a_b.py'"),
        ("ﬁ", "fi", "both generate 'fi.py'"),
        ("e\u0301", "é", "both generate"),
        ("Foo", "foo", "some file systems take for the same"),
        ("x/__init__", "y", "it would become 'x/__init__.py', which makes a package"),
        ("deep/y", "deep", "needs the package"),
    ],
)
def test_names_for_one_module_are_refused(
    one: str, other: str, message: str, kerngen: Run
) -> None:
    edit(SOURCE / f"{one}.kern", SCALE)
    edit(SOURCE / f"{other}.kern", SCALE)
    assert message in kerngen("build", code=1).output
    assert message in kerngen("check", code=1).output
    assert not OUT.exists()


def test_a_name_that_is_no_text_is_refused(kerngen: Run) -> None:
    Path(os.fsdecode(os.fsencode(SOURCE) + b"/\xff.kern")).write_text(SCALE)
    assert "rename the file" in kerngen("build", code=1).output


def test_a_message_shows_no_line_break_of_a_name(kerngen: Run) -> None:
    edit(SOURCE / "a\nb.kern", SCALE)
    edit(SOURCE / "a b.kern", SCALE)
    assert len(kerngen("build", code=1).output.splitlines()) == 1


def test_folders_become_packages_that_python_can_import(kerngen: Run) -> None:
    edit(SOURCE / "a-b" / "s.kern", STRUCT)
    edit(SOURCE / "class" / "u.kern", USER.replace("a-b", "../a-b"))
    edit(SOURCE / "u.kern", USER)
    kerngen("build")
    made = files(OUT)
    assert {"a_b/s.py", "class_/u.py", "class_/__init__.py"} <= made.keys()
    assert b"from .a_b.s import S" in made["u.py"]
    assert b"from ..a_b.s import S" in made["class_/u.py"]


# The output

MINE = "mine\n"


@pytest.mark.parametrize(
    "name", ["scale.py", "__init__.py", "py.typed", "manifest.json"]
)
def test_a_users_file_is_never_replaced(name: str, kerngen: Run) -> None:
    edit(OUT / name, MINE)
    assert name in kerngen("build", code=1).output
    assert files(OUT) == {name: MINE.encode()}


IN_THE_WAY = [
    (name, make)
    for name in ("scale.py", "manifest.json", "wgsl", "deep")
    for make in (pipe, link("/dev/zero"), link("elsewhere"), os.mkdir)
    if make is not os.mkdir or "." in name  # a folder is what belongs there
]


@pytest.mark.parametrize(("name", "make"), IN_THE_WAY)
def test_odd_files_in_the_way_are_refused(name: str, make: Make, kerngen: Run) -> None:
    OUT.mkdir(parents=True)
    make(OUT / name)
    assert name in kerngen("build", code=1).output
    assert [path.name for path in OUT.iterdir()] == [name]


@pytest.mark.parametrize("text", ["[]", "{}", "[" * 100_000, '{"format": 1}', "\0"])
def test_a_manifest_of_somebody_else_is_refused(text: str, kerngen: Run) -> None:
    edit(OUT / "manifest.json", text)
    for command in (["build"], ["build", "--check"]):
        assert "is not a manifest" in kerngen(*command, code=1).output


def test_a_stamp_that_is_none_is_ignored(kerngen: Run) -> None:
    kerngen("build")
    stamp = OUT / "__pycache__" / "kerngen.json"
    stamp.unlink()
    pipe(stamp)
    kerngen("build")


def test_a_generated_file_that_became_a_pipe_is_in_the_way(kerngen: Run) -> None:
    kerngen("build")
    (OUT / "scale.py").unlink()
    pipe(OUT / "scale.py")
    assert "is in the way" in kerngen("build", code=1).output


def test_sources_may_lie_in_the_output_and_stay(kerngen: Run) -> None:
    edit(Path("pyproject.toml"), PYPROJECT.replace("gen/kernels", "dsl"))
    edit(SOURCE / "notes.txt", MINE)
    before = files(SOURCE)
    kerngen("build")
    kerngen("build")
    (SOURCE / "deep" / "total.kern").unlink()
    kerngen("build")
    after = files(SOURCE)
    assert {path: after.get(path) for path in before} == before | {
        "deep/total.kern": None
    }
    assert "deep/total.py" not in after


def test_what_no_build_left_beside_the_output_stays(kerngen: Run) -> None:
    mine = OUT.with_name(f".{OUT.name}.kerngen")
    edit(mine / "notes.txt", MINE)
    assert "something else is there" in kerngen("build", code=1).output
    assert files(mine) == {"notes.txt": MINE.encode()}


@pytest.mark.parametrize("out", ["/", "loop", "dsl/scale.kern"])
def test_what_is_no_folder_for_output_is_refused(out: str, kerngen: Run) -> None:
    Path("loop").symlink_to("loop")
    before = files(Path())
    result = kerngen("build", "--out", out, code=2 if out == "/" else 1)
    assert "Error" in result.stderr
    assert files(Path()) == before


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, '[tool.kerngen]\nout = "\\u0000"']
)
def test_settings_that_cant_be_read_are_refused(text: str, kerngen: Run) -> None:
    edit(Path("pyproject.toml"), text)
    assert "Error" in kerngen("build", SOURCE, code=1).output


def test_files_may_use_each_other_in_a_long_chain(kerngen: Run) -> None:
    for number in range(300):
        edit(SOURCE / f"c{number}.kern", f'use "c{number + 1}.kern";\n')
    edit(SOURCE / "c300.kern", STRUCT)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    try:
        kerngen("check", SOURCE / "c0.kern")
    finally:
        sys.setrecursionlimit(limit)


def test_a_folder_that_cant_be_written_to_stays(
    kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write anywhere, so that the system is made to refuse it."""
    kerngen("build")
    before = files(Path())

    def refuse(path: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    edit(SOURCE / "scale.kern", TOTAL)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        assert "Read-only file system." in kerngen("build", code=1).output
    edit(SOURCE / "scale.kern", SCALE)
    assert files(Path()) == before
    assert "0 files written" in kerngen("build").output


LIMITED = """
import resource, signal, sys
from kerngen.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # it is EFBIG instead
main(["build"])
"""


@pytest.mark.skipif("os.name == 'nt'", reason="Windows has no such limit")
@pytest.mark.parametrize(
    "bytes_", [*(pytest.param(n, marks=pytest.mark.nightly) for n in (0, 200)), 2000]
)
def test_on_a_full_disk_the_old_output_stays(bytes_: int, kerngen: Run) -> None:
    kerngen("build")
    before = files(OUT)
    edit(SOURCE / "scale.kern", SCALE.replace("scale", "scaled"))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(bytes_)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "File too large." in done.stderr
    assert files(OUT) == before
    assert [path.name for path in OUT.parent.iterdir()] == [OUT.name]
    kerngen("build")
    assert "wgsl/scale/scaled.map.wgsl" in files(OUT)


# Sources that others change at the same time


@pytest.mark.parametrize("command", OF_FOLDERS[:5])
def test_a_source_that_vanishes_is_missed(
    command: str, kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(ODD, SCALE)
    read = reading.read_data

    def vanish(file: Path) -> bytes:
        ODD.unlink(missing_ok=True)
        return read(file)

    for module in ("kerngen.source.reading", "kerngen.cli.fmt"):
        monkeypatch.setitem(vars(sys.modules[module]), "read_data", vanish)
    assert "No such file" in kerngen(*command.split(), code=1).output
    assert not OUT.exists()


def test_what_is_built_is_what_was_read(
    kerngen: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A source that changes after it was read is stale, and built by the next build."""
    compile_file = Compiler.compile

    def meddle(self: Compiler, name: str) -> CompiledModule:
        edit(SOURCE / "scale.kern", SCALE.replace("k * x[i]", "k + x[i]"))
        return compile_file(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(Compiler, "compile", meddle)
        kerngen("build")
    kerngen("build", "--check", code=1)
    kerngen("build")
    kerngen("build", "--check")
