"""`kerngen check` and `kerngen show`."""

from __future__ import annotations

import json

import pytest

from tests.cli.sample import OUT, SCALE, SOURCE, WRONG, Run, edit, files

pytestmark = pytest.mark.usefixtures("project")


def test_check_of_right_programs(kerngen: Run) -> None:
    assert kerngen("check").output == "2 files checked: no errors.\n"
    assert kerngen("check", "dsl/scale.kern").output == "1 file checked: no errors.\n"
    assert not OUT.exists()


def test_check_reports_every_file(kerngen: Run) -> None:
    edit(SOURCE / "a.kern", WRONG)
    edit(SOURCE / "b.kern", WRONG)
    output = kerngen("check", code=1).output
    assert "--> dsl/a.kern:1:49" in output
    assert "--> dsl/b.kern:1:49" in output
    assert "\n2 errors\n" in output
    assert "\x1b" not in output


def test_check_as_json(kerngen: Run) -> None:
    assert json.loads(kerngen("check", "--json").stdout) == []
    edit(SOURCE / "a.kern", WRONG)
    (SOURCE / "b.kern").write_bytes(b"\xff")
    first, second = json.loads(kerngen("check", "--json", code=1).stdout)
    assert (first["path"], first["line"], first["column"]) == ("dsl/a.kern", 1, 49)
    assert (second["path"], second["code"]) == ("dsl/b.kern", "KG0001")


def test_show_has_equation_layout_schedules_and_wgsl(kerngen: Run) -> None:
    output = kerngen("show", "scale").output
    assert SCALE.strip() in output
    assert "scale  dsl/scale.kern:1\n" in output
    assert "uniform struct ScaleUniform, 8 bytes\n" in output
    assert "       4     4  k: f32\n" in output
    assert "stage y, over i < n\n  y[i] = " in output
    assert "  1. map  (" in output
    assert "     aligned: (n) % 4 == 0\n" in output
    kerngen("build")
    for path, text in files(OUT).items():
        if path.startswith("wgsl/"):
            assert f"---- {path.removeprefix('wgsl/')}\n{text.decode()}" in output


def test_show_names_the_schedules_that_the_user_asked_for(kerngen: Run) -> None:
    item = "schedule scale when n < 100 and n % 2 == 0 { generic }"
    edit(SOURCE / "scale.kern", f"{SCALE}{item}\n")
    output = kerngen("show", "scale").output
    assert "  1. generic when n < 100 and n % 2 == 0  (asked for)\n" in output
    assert "  2. map  (" in output


def test_show_explains_the_choice(kerngen: Run) -> None:
    edit(
        SOURCE / "mean.kern",
        "kernel centre(x: f32[m, n]) -> y: f32[m, n] {"
        " let twice[i, j] = 2.0 * x[i, j];"
        " let mean[i] = (sum[j] x[i, j]) / f32(n);"
        " y[i, j] = twice[i, j] - mean[i]; }",
    )
    output = kerngen("show", "centre").output
    assert "temporaries: mean[m]" in output
    assert "stage mean, over i < m" in output
    assert "reads x; writes mean" in output
    assert "at least 4 m n + 4 m bytes, m n + m operations" in output
    assert "  1. reduce when m < 64 and n > 65536  (" in output
    assert "  2. rows_lanes1024_subgroups1, with y when " in output
    assert "  3. rows, with y  (2 stages share their rows)" in output
    together = "together at least 8 m n bytes, 3 m n + m operations; mean not stored"
    assert f"     {together}\n" in output
    assert "stage y, over i < m, j < n" in output
    assert "  runs with mean; else:\n  1. map" in output
    assert "not map: the stage holds a reduction, 'sum'" in output


def test_show_as_json(kerngen: Run) -> None:
    shown = json.loads(kerngen("show", "total", "--json").stdout)
    assert (shown["name"], shown["path"]) == ("total", "dsl/deep/total.kern")
    assert shown["doc"] == "Adds up."
    assert shown["uniform"]["fields"][0] == {
        "name": "n", "type": "u32", "offset": 0, "size": 4,
    }  # fmt: skip
    assert "@compute" in json.dumps(shown["stages"])


def test_show_tells_two_kernels_of_one_name_apart(kerngen: Run) -> None:
    edit(SOURCE / "other.kern", SCALE)
    output = kerngen("show", "scale", code=1).output
    assert "several kernels 'scale': other.scale, scale.scale" in output
    assert "dsl/other.kern:1" in kerngen("show", "other.scale").output


def test_show_of_an_unknown_kernel_suggests_one(kerngen: Run) -> None:
    output = kerngen("show", "scael", code=1).output
    assert "There is no kernel 'scael'. Did you mean 'scale'?" in output


def test_show_of_a_wrong_program_prints_its_diagnostics(kerngen: Run) -> None:
    edit(SOURCE / "a.kern", WRONG)
    assert "dsl/a.kern:1:49" in kerngen("show", "scale", code=1).stderr
