"""`kerngen bind`: files written, kept, pruned and checked, beside those of a build."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.sample import OUT, Run, edit, files, times

SHADERS = Path("shaders")
FILL = """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn fill(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 1.0; }
"""


@pytest.fixture(autouse=True)
def shaders(project: Path) -> None:
    del project  # the working directory
    edit(SHADERS / "fill.wgsl", FILL)
    edit(SHADERS / "post-process" / "my-blur.wgsl", "struct Params { n: u32 }\n")


def test_a_folder_is_bound_and_what_is_gone_is_removed(kerngen: Run) -> None:
    output = kerngen("bind", SHADERS, "--out", "bound").output
    assert output == "bound: 8 files written, 0 unchanged.\n"
    found = files(Path("bound"))
    assert found["wgsl/fill/fill.wgsl"] == FILL.encode()
    assert {"fill.py", "post_process/my_blur.py", "py.typed"} <= {*found}
    (SHADERS / "fill.wgsl").unlink()
    assert "2 removed" in kerngen("bind", SHADERS, "--out", "bound").output
    assert "fill.py" not in files(Path("bound"))


def test_the_outputs_of_a_folder_with_one_shader_are_removed(kerngen: Run) -> None:
    edit(SHADERS / "last.wgsl", FILL)
    (SHADERS / "post-process" / "my-blur.wgsl").unlink()
    kerngen("bind", SHADERS, "--out", "bound")
    (SHADERS / "last.wgsl").unlink()
    kerngen("bind", SHADERS, "--out", "bound", "--check", code=1)
    assert "2 removed" in kerngen("bind", SHADERS, "--out", "bound").output
    assert "fill.py" in files(Path("bound"))
    edit(SHADERS / "last.wgsl", FILL)
    kerngen("bind", SHADERS, "--out", "bound")
    assert "removed" not in (
        kerngen("bind", SHADERS / "fill.wgsl", "--out", "bound").output
    )


def test_outputs_within_the_folder_are_no_shaders(kerngen: Run) -> None:
    for out in (SHADERS / "bound", SHADERS):
        kerngen("bind", SHADERS, "--out", out)
        assert (
            "is up to date"
            in kerngen("bind", SHADERS, f"--out={out}", "--check").output
        )


def test_a_manifest_of_something_else_hides_no_shaders(kerngen: Run) -> None:
    edit(Path("site/manifest.json"), '{"name": "site"}')
    edit(Path("site/wgsl/fill.wgsl"), FILL)
    kerngen("bind", "site", "--out", "bound")
    assert "wgsl/fill.py" in files(Path("bound"))


def test_what_is_fresh_is_not_written_again(kerngen: Run) -> None:
    kerngen("bind", SHADERS, "--out", "bound")
    before = times(Path("bound"))
    output = kerngen("bind", SHADERS, "--out", "bound").output
    assert output == "bound: 0 files written, 8 unchanged.\n"
    edit(SHADERS / "fill.wgsl", FILL.replace("1.0", "2.0"))
    kerngen("bind", SHADERS / "fill.wgsl", "--out", "bound")
    after = times(Path("bound"))
    changed = {path for path in before if before[path] != after[path]}
    assert changed == {"fill.py", "manifest.json", "wgsl/fill/fill.wgsl"}


def test_check_writes_nothing(kerngen: Run) -> None:
    output = kerngen("bind", SHADERS, "--out", "bound", "--check", code=1).output
    assert "missing: fill.py" in output
    assert "'kerngen bind' brings them up to date" in output
    assert not Path("bound").exists()
    kerngen("bind", SHADERS, "--out", "bound")
    assert "is up to date" in kerngen("bind", SHADERS, "--out=bound", "--check").output
    edit(Path("bound/fill.py"), "# changed\n")
    assert (
        "stale: fill.py"
        in kerngen("bind", SHADERS, "--out=bound", "--check", code=1).output
    )


def test_builds_and_bindings_share_a_folder(kerngen: Run) -> None:
    kerngen("build")
    kerngen("bind", SHADERS)
    assert {"scale.py", "fill.py"} <= {*files(OUT)}
    edit(Path("dsl/fill2.wgsl"), FILL)
    kerngen("bind", "dsl/fill2.wgsl", "--out", OUT)
    kerngen("build")
    assert {"scale.py", "fill.py", "fill2.py"} <= {*files(OUT)}
    kerngen("bind", SHADERS, "--check")
    assert "is up to date" in kerngen("build", "--check").output


def test_all_faults_are_reported_and_nothing_is_written(kerngen: Run) -> None:
    edit(SHADERS / "a.wgsl", "#import bevy::b\n")
    edit(SHADERS / "b.wgsl", "struct S { a: f31 }\n")
    output = kerngen("bind", SHADERS, "--out", "bound", code=1).output
    assert "error[KG1405]: '#import bevy::b' is not WGSL" in output
    assert "shaders/a.wgsl:1:1" in output
    assert "error[KG1407]: There is no type 'f31' in this file." in output
    assert "2 errors" in output
    assert not Path("bound").exists()


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("nothing", 1, "'nothing' does not exist."),
        ("dsl/scale.kern", 1, "'dsl/scale.kern' is not a .wgsl file."),
        ("dsl", 1, "There are no .wgsl files in 'dsl'."),
    ],
)
def test_a_wrong_source_is_named(
    kerngen: Run, path: str, code: int, message: str
) -> None:
    assert message in kerngen("bind", path, code=code).output


def test_two_sources_of_one_module_are_refused(kerngen: Run) -> None:
    kerngen("build")
    edit(SHADERS / "scale.wgsl", FILL)
    output = kerngen("bind", SHADERS, code=1).output
    assert (
        "'dsl/scale.kern' and 'shaders/scale.wgsl' both generate 'scale.py'" in output
    )
