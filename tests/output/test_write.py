"""What writing does to a folder, and what it leaves alone."""

from __future__ import annotations

import json
import os
import py_compile
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kerngen.output import transaction
from kerngen.output.atomic_replace import replace_atomically
from kerngen.output.errors import OutputError
from kerngen.output.files import Generated
from kerngen.output.manifest import Manifest, digest, read_manifest
from kerngen.output.transaction import write_files
from kerngen.output.write import Summary, check, write
from tests.output.interrupt import no_exchange

A = Generated("dsl/a.kern", "1", {"a.py": b"a\n", "wgsl/a.k.wgsl": b"shader\n"})
B = Generated("dsl/sub/b.kern", "2", {"sub/b.py": b"b\n"})
PACKAGE = {"__init__.py", "py.typed", "manifest.json"}


def none(source: str) -> bool:
    assert source
    return False


def but(name: str) -> Callable[[str], bool]:
    return lambda source: source != name


@pytest.fixture(params=["exchange", "in_place"])
def out(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Return a folder that is not there yet, written to in either way."""
    if request.param == "in_place":
        monkeypatch.setattr(transaction, "swap_folder", no_exchange)
    return tmp_path / "gen" / "kernels"


def files(out: Path) -> set[str]:
    return {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}


def times(out: Path) -> dict[str, tuple[int, int]]:
    return {
        path: ((out / path).stat().st_mtime_ns, (out / path).stat().st_ino)
        for path in files(out)
    }


def test_makes_a_package(out: Path) -> None:
    summary = write([A, B], out, keep=none)
    assert files(out) == PACKAGE | {
        "a.py",
        "wgsl/a.k.wgsl",
        "sub/__init__.py",
        "sub/b.py",
    }
    assert set(summary.written) == files(out)
    assert (summary.removed, summary.unchanged, summary.left) == ((), 0, ())
    assert (out / "a.py").read_bytes() == b"a\n"
    assert [path.name for path in out.parent.iterdir()] == ["kernels"]


def test_writes_nothing_twice(out: Path) -> None:
    write([A, B], out, keep=none)
    before = times(out)
    assert write([A, B], out, keep=none) == Summary((), (), 7, ())
    assert times(out) == before


def test_writes_only_what_changed(out: Path) -> None:
    write([A, B], out, keep=none)
    before = times(out)
    new = Generated(A.source, "9", {**A.files, "a.py": b"new\n"})
    assert write([new, B], out, keep=none).written == ("a.py", "manifest.json")
    after = times(out)
    assert {path for path in after if after[path] != before[path]} == {
        "a.py",
        "manifest.json",
    }


def test_bytecode_of_what_changed_is_removed(out: Path) -> None:
    """Python would take it for the new file's, if that is of the same second and size."""
    write([A, B], out, keep=none)
    for file in (out / "a.py", out / "sub" / "b.py"):
        py_compile.compile(str(file), doraise=True)
    write([replace(A, files={**A.files, "a.py": b"c\n"}), B], out, keep=none)
    left = sorted(file.name.partition(".")[0] for file in out.rglob("*.pyc"))
    assert left == ["b"]


def test_prunes_what_is_no_longer_generated(out: Path) -> None:
    write([A, B], out, keep=none)
    summary = write([A], out, keep=none)
    assert files(out) == PACKAGE | {"a.py", "wgsl/a.k.wgsl"}
    assert summary.removed == ("sub/__init__.py", "sub/b.py")
    assert not (out / "sub").exists()


def test_leaves_a_users_files_alone(out: Path) -> None:
    write([A, B], out, keep=none)
    mine = ["mine.py", "sub/mine.txt", "own/deep/x", "wgsl/mine.wgsl", ".hidden"]
    for path in mine:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_text(path, encoding="utf-8")
    (out / "empty").mkdir()
    (out / "link").symlink_to("own")
    (out / "broken").symlink_to("nowhere")
    before = {path: times(out)[path] for path in mine}
    write([], out, keep=none)
    assert {path for path in files(out) if not path.startswith("link/")} == {
        *PACKAGE,
        *mine,
    }
    assert {path: times(out)[path] for path in mine} == before
    assert (out / "empty").is_dir()
    assert (out / "link").readlink() == Path("own")
    assert (out / "broken").readlink() == Path("nowhere")


def test_a_files_build_leaves_the_others_alone(out: Path) -> None:
    write([A, B], out, keep=none)
    before = times(out)
    new = Generated(A.source, "9", {"a.py": b"new\n"})
    summary = write([new], out, keep=but(A.source))
    assert summary.removed == ("wgsl/a.k.wgsl",)
    assert times(out)["sub/b.py"] == before["sub/b.py"]
    assert set(read_manifest(out).sources) == {A.source, B.source}


@pytest.mark.parametrize("path", ["a.py", "wgsl/a.k.wgsl", "__init__.py"])
def test_refuses_to_overwrite_a_users_file(path: str, out: Path) -> None:
    (out / path).parent.mkdir(parents=True)
    (out / path).write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match=r"is in the way"):
        write([A], out, keep=none)
    assert files(out) == {path}
    assert (out / path).read_text("utf-8") == "mine"


def test_adopts_a_file_that_is_as_generated(out: Path) -> None:
    out.mkdir(parents=True)
    (out / "a.py").write_bytes(A.files["a.py"])
    assert "a.py" not in write([A], out, keep=none).written
    assert write([], out, keep=none).removed == ("a.py", "wgsl/a.k.wgsl")


@pytest.mark.parametrize("made", ["file", "link"])
def test_refuses_to_write_through_what_is_no_folder(made: str, out: Path) -> None:
    out.mkdir(parents=True)
    if made == "file":
        (out / "wgsl").write_text("mine", encoding="utf-8")
    else:
        (out.parent / "elsewhere").mkdir()
        (out / "wgsl").symlink_to(out.parent / "elsewhere")
    with pytest.raises(OutputError, match=r"wgsl' is in the way"):
        write([A], out, keep=none)
    assert len(list(out.iterdir())) == 1


def test_refuses_a_folder_in_the_place_of_a_file(out: Path) -> None:
    (out / "a.py").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"a\.py' is in the way"):
        write([A], out, keep=none)


def test_refuses_a_file_for_a_folder(out: Path) -> None:
    out.parent.mkdir()
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="is a file, not a folder"):
        write([A], out, keep=none)


def test_follows_a_link_to_the_output(out: Path) -> None:
    real = out.parent / "real"
    real.mkdir(parents=True)
    out.symlink_to(real)
    write([A], out, keep=none)
    assert out.is_symlink()
    assert "a.py" in files(real)


def test_rewrites_a_generated_file_that_was_edited(out: Path) -> None:
    write([A], out, keep=none)
    (out / "a.py").write_text("edited", encoding="utf-8")
    assert write([A], out, keep=none).written == ("a.py",)


def test_leaves_an_orphan_that_was_edited(out: Path) -> None:
    write([A, B], out, keep=none)
    (out / "sub" / "b.py").write_text("edited", encoding="utf-8")
    summary = write([A], out, keep=none)
    assert summary.left == ("sub/b.py",)
    assert (out / "sub" / "b.py").read_text("utf-8") == "edited"
    assert write([A], out, keep=none).left == ()


def test_refuses_two_sources_for_one_module(out: Path) -> None:
    other = Generated("dsl/A!.kern", "1", {"a.py": b"other"})
    with pytest.raises(OutputError, match=r"both generate 'a\.py'"):
        write([A, other], out, keep=none)
    assert not out.exists()


def test_refuses_files_that_differ_in_case_only(out: Path) -> None:
    alike = Generated("dsl/b.kern", "1", {"b.py": b"", "wgsl/b.F.wgsl": b""})
    other = Generated("dsl/c.kern", "1", {"c.py": b"", "wgsl/b.f.wgsl": b""})
    with pytest.raises(OutputError, match="Rename a kernel"):
        write([alike, other], out, keep=none)
    assert not out.exists()


def test_refuses_a_module_beside_a_package_of_its_name(out: Path) -> None:
    with pytest.raises(OutputError, match="the package 'sub'"):
        write([B, Generated("dsl/sub.kern", "1", {"sub.py": b""})], out, keep=none)
    assert not out.exists()


def test_refuses_a_source_named_init(out: Path) -> None:
    source = Generated("dsl/__init__.kern", "1", {"__init__.py": b""})
    with pytest.raises(OutputError, match="makes a package of its folder"):
        write([source], out, keep=none)


def manifest_with(path: str) -> str:
    files = {path: "0"}
    return json.dumps({"format": 1, "package": files, "sources": {}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<<<<<<< ours",
        "[]",
        '{"name": "a web application"}',
        '{"format": 2}',
        manifest_with("../outside"),
        manifest_with("/etc/passwd"),
        manifest_with("a/../../b"),
    ],
)
def test_refuses_a_manifest_that_it_cant_trust(text: str, out: Path) -> None:
    out.mkdir(parents=True)
    (out / "manifest.json").write_text(text, encoding="utf-8")
    with pytest.raises(OutputError, match=r"manifest\.json' is not a manifest"):
        write([A], out, keep=none)
    assert files(out) == {"manifest.json"}


# Folders that a stranger has prepared: what lies outside stays as it is


@pytest.fixture
def theirs(out: Path) -> Path:
    """Return a file outside of the output, where a link of the output leads."""
    file = out.parent.parent / "home" / "a.py"
    file.parent.mkdir()
    file.write_bytes(A.files["a.py"])
    out.mkdir(parents=True)
    (out / "home").symlink_to(file.parent)
    return file


def test_removes_nothing_behind_a_link(theirs: Path, out: Path) -> None:
    listed = {"home/a.py": digest(theirs.read_bytes())}
    text = json.dumps({"format": 1, "package": listed, "sources": {}})
    (out / "manifest.json").write_text(text, encoding="utf-8")
    write([B], out, keep=none)
    assert theirs.read_bytes() == A.files["a.py"]


@pytest.mark.parametrize(
    "notes",
    [
        {"journal.json": '["home/a.py"]'},
        {"journal.json": '["../../home/a.py"]'},
        {"journal.json": "[]", "old/home/a.py": "theirs"},
        {"journal.json": '{"home/a.py": 1}'},
    ],
)
def test_a_prepared_staging_folder_reaches_nothing_outside(
    notes: dict[str, str], theirs: Path, out: Path
) -> None:
    staging = out.with_name(f".{out.name}.kerngen")
    for path, text in notes.items():
        (staging / path).parent.mkdir(parents=True, exist_ok=True)
        (staging / path).write_text(text, encoding="utf-8")
    with pytest.raises(OutputError, match=r"is outside of|is a link or a file now"):
        write([B], out, keep=none)
    assert theirs.read_bytes() == A.files["a.py"]


@pytest.mark.parametrize("advice", ["move it", "delete the folder"])
@pytest.mark.parametrize("obstacle", ["link", "file"])
def test_what_keeps_old_files_from_coming_back_is_told_and_can_be_mended(
    obstacle: str, advice: str, tmp_path: Path, out: Path
) -> None:
    """A build of B was killed when it had replaced one file of A's, and written one."""
    write([A], out, keep=none)
    staging = out.with_name(f".{out.name}.kerngen")
    write_files(
        {"old/wgsl/a.k.wgsl": b"shader\n", "journal.json": b'["b.py"]'}, staging
    )
    (out / "b.py").write_bytes(B.files["sub/b.py"])
    shutil.rmtree(out / "wgsl")
    if obstacle == "link":
        (out / "wgsl").symlink_to(tmp_path)
    else:
        (out / "wgsl").write_text("mine", encoding="utf-8")
    for _ in range(2):
        with pytest.raises(OutputError, match=f"'{out / 'wgsl'}' is a link or a file"):
            write([B], out, keep=none)
    if advice == "move it":
        (out / "wgsl").rename(tmp_path / "moved")
    else:
        shutil.rmtree(staging)
    write([B], out, keep=none)
    assert files(out) >= PACKAGE | {"sub/b.py"}
    assert not (out / "b.py").exists()
    assert not staging.exists()


@pytest.mark.parametrize("path", ["home/a.py", "plain/a.py"])
def test_what_cant_be_carried_over_is_put_aside_once(
    path: str, theirs: Path, out: Path
) -> None:
    (out / "plain").write_text("mine", encoding="utf-8")
    staging = out.with_name(f".{out.name}.kerngen")
    saved = staging / "twin" / path
    saved.parent.mkdir(parents=True)
    saved.write_text("saved", encoding="utf-8")
    (staging / "kept.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputError, match="are links or files now: they are in"):
        write([B], out, keep=none)
    (aside,) = out.parent.glob(f"{out.name}.saved-*/{path}")
    assert aside.read_text("utf-8") == "saved"
    assert theirs.read_bytes() == A.files["a.py"]
    write([B], out, keep=none)
    assert files(out) >= {"sub/b.py", "plain"}
    assert not staging.exists()


@pytest.mark.skipif(os.name == "nt", reason="a backslash is no part of a name")
def test_a_backslash_in_a_users_file_is_a_letter(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([A], out, keep=none)
    mine = out / "a\\b.txt"
    mine.write_text("mine", encoding="utf-8")
    wanted = "mine"

    def meanwhile(changed: Mapping[str, bytes], folder: Path) -> None:
        nonlocal wanted
        wanted = "saved"
        write_files(changed, folder)
        mine.unlink()
        mine.write_text("saved", encoding="utf-8")

    monkeypatch.setattr(transaction, "write_files", meanwhile)
    write([B], out, keep=none)
    assert not out.with_name(f".{out.name}.kerngen").exists()
    assert mine.read_text("utf-8") == wanted


@pytest.mark.parametrize("link", ["old", "twin"])
def test_a_link_in_the_staging_folder_is_refused(
    link: str, theirs: Path, out: Path
) -> None:
    staging = out.with_name(f".{out.name}.kerngen")
    staging.mkdir()
    (staging / link).symlink_to(theirs.parent)
    (staging / "journal.json").write_text("[]", encoding="utf-8")
    (staging / "kept.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputError, match="something else is there"):
        write([B], out, keep=none)
    assert theirs.exists()


def test_the_owner_of_a_folder_stays(out: Path) -> None:
    """As root builds in a container, in a folder of the user's outside."""
    write([A], out, keep=none)
    if os.name == "nt" or os.geteuid() != 0:
        pytest.skip("only root gives folders away")
    for folder in (out, out / "wgsl"):
        os.chown(folder, 1234, 1234)
    write([B], out, keep=none)
    assert out.stat().st_uid == 1234


def test_the_manifest_is_the_same_in_any_order(tmp_path: Path) -> None:
    write([A, B], tmp_path / "1", keep=none)
    write([B, A], tmp_path / "2", keep=none)
    texts = [(tmp_path / name / Manifest.NAME).read_bytes() for name in "12"]
    assert texts[0] == texts[1]


def test_works_from_inside_the_folder(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([A, B], out, keep=none)
    monkeypatch.chdir(out)
    write([B], Path(), keep=none)
    assert Path.cwd() == out.resolve()
    assert {path.name for path in Path().iterdir()} == {*PACKAGE, "sub"}


def test_check_finds_nothing_after_a_write(out: Path) -> None:
    write([A, B], out, keep=none)
    assert check([A, B], out, keep=none) == []


def test_check_finds_stale_missing_and_left_over(out: Path) -> None:
    write([A, B], out, keep=none)
    (out / "a.py").write_text("edited\n", encoding="utf-8")
    (out / "wgsl" / "a.k.wgsl").unlink()
    before = times(out)
    found = {d.path: d for d in check([A], out, keep=none)}
    assert times(out) == before
    assert {path: d.kind for path, d in found.items()} == {
        "a.py": "stale",
        "wgsl/a.k.wgsl": "missing",
        "manifest.json": "stale",
        "sub/__init__.py": "left over",
        "sub/b.py": "left over",
    }
    assert "-edited\n+a\n" in found["a.py"].diff
    assert "+shader\n" in found["wgsl/a.k.wgsl"].diff


def test_a_folder_that_cant_be_written_is_left_alone(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write([A], out, keep=none)
    before = files(out), times(out)
    replace = Path.replace

    def refuse(source: Path, target: Path) -> Path:
        if Path(target).is_relative_to(out):
            raise PermissionError(13, "Permission denied", str(target))
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr(transaction, "swap_folder", no_exchange)
    with pytest.raises(PermissionError):
        write([B], out, keep=none)
    assert (files(out), times(out)) == before
    assert [path.name for path in out.parent.iterdir()] == ["kernels"]


@pytest.mark.skipif(os.name == "nt", reason="no modes of this kind")
def test_a_private_file_is_private_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    mode = Path.chmod

    def chmod(path: Path, to: int) -> None:
        seen.append(path.stat().st_mode & 0o777)
        mode(path, to)

    file = tmp_path / "mine.kern"
    file.write_bytes(b"before")
    file.chmod(0o640)
    monkeypatch.setattr(Path, "chmod", chmod)
    (tmp_path / ".kerngen.tmp").write_bytes(b"of a killed run")
    replace_atomically(file, b"before", b"after")
    assert (seen, file.stat().st_mode & 0o777) == ([0o600], 0o640)
    assert [*tmp_path.iterdir()] == [file]
