"""`kerngen check` and `kerngen show`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from kerngen.report import kernel as describe
from tests.cli.sample import OUT, SCALE, SOURCE, WRONG, Run, edit, files
from tests.project.tree import ROOT

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


def test_check_shows_the_first_errors_of_each_file(kerngen: Run) -> None:
    wrong = "".join(f"const C{n}: f32 = x{n};\n" for n in range(50))
    edit(SOURCE / "a.kern", wrong)
    edit(SOURCE / "b.kern", WRONG)
    output = kerngen("check", code=1).output
    assert output.count("error[") == 20 + 1
    assert "--> dsl/a.kern:20:18" in output
    assert "--> dsl/b.kern:1:49" in output
    assert "\n51 errors, 21 of them shown: --error-limit 0 of " in output
    few = kerngen("check", "--error-limit", "3", code=1).output
    assert few.count("error[") == 3 + 1
    whole = kerngen("check", "--error-limit", "0", code=1).output
    assert whole.count("error[") == 51
    assert "\n51 errors\n" in whole
    assert len(json.loads(kerngen("check", "--json", code=1).stdout)) == 51


def test_check_as_json(kerngen: Run) -> None:
    assert json.loads(kerngen("check", "--json").stdout) == []
    edit(SOURCE / "a.kern", WRONG)
    (SOURCE / "b.kern").write_bytes(b"\xff")
    first, second = json.loads(kerngen("check", "--json", code=1).stdout)
    assert (first["path"], first["line"], first["column"]) == ("dsl/a.kern", 1, 49)
    assert (second["path"], second["code"]) == ("dsl/b.kern", "KG0001")


def test_check_as_json_of_what_is_not_there(kerngen: Run) -> None:
    Path("empty").mkdir()
    for src, text in (
        ("missing.kern", "'missing.kern' does not exist."),
        ("empty", "There are no .kern files in 'empty'."),
    ):
        (error,) = json.loads(kerngen("check", src, "--json", code=1).stdout)
        assert (error["severity"], error["code"]) == ("error", None)
        assert (error["headline"], error["path"]) == (text, src)
        assert error["line"] is error["column"] is None
    kerngen("check", "missing.kern", "-", "--json", code=2)


def test_check_as_json_has_the_hints(kerngen: Run) -> None:
    edit(
        SOURCE / "a.kern",
        "kernel class(x: f32[n], k: f32) -> y: f32[n] { y[i] = x[i]; }",
    )
    told = kerngen("check").output
    renamed, unread = json.loads(kerngen("check", "--json").stdout)
    for hint in (renamed, unread):
        assert (hint["severity"], hint["code"], hint["path"]) == (
            "hint",
            None,
            "dsl/a.kern",
        )
        assert f"hint: {hint['headline']}\n" in told
    assert (renamed["line"], renamed["end_column"]) == (None, None)
    assert (unread["line"], unread["column"], unread["end_column"]) == (1, 25, 26)
    edit(SOURCE / "b.kern", WRONG)
    (error,) = json.loads(kerngen("check", "--json", code=1).stdout)
    assert error["severity"] == "error"
    assert error.keys() == unread.keys()


def test_show_has_equation_layout_schedules_and_wgsl(kerngen: Run) -> None:
    output = kerngen("show", "scale").output
    assert SCALE.strip() in output
    assert "scale  dsl/scale.kern:1\n" in output
    assert "uniform struct ScaleUniform, 8 bytes\n" in output
    assert "       4     4  k: f32\n" in output
    assert "stage y, over i < n\n  y[i] = " in output
    assert "  1. map  (" in output
    kerngen("build")
    for path, text in files(OUT).items():
        if path.endswith(".wgsl") and path.startswith("wgsl/"):
            assert f"---- {path.rpartition('/')[2]}\n{text.decode()}" in output


def test_show_leaves_the_shaders_out(kerngen: Run) -> None:
    whole, short = kerngen("show", "scale"), kerngen("show", "scale", "--no-wgsl")
    assert whole.output.startswith(short.output)
    assert whole.output[len(short.output) :].startswith("\n----")
    assert "@compute" not in short.output
    kerngen("show", "scale", "--no-wgsl", "--json", code=2)


def test_show_finds_kernels_that_return_lets_too(kerngen: Run) -> None:
    gradient = "kernel g = gradient of f by x given e;"
    text = (
        "kernel f(x: f32[n]) -> y: f32[n] { let e[i] = exp(x[i]); y[i] = e[i] * e[i]; }"
    )
    edit(SOURCE / "g.kern", f"{text}\n{gradient}\n")
    output = kerngen("show", "f_kept", "--no-wgsl").output
    assert gradient in output
    assert "Returns `e`, too." in output
    assert "no kernel 'g_kept'" in kerngen("show", "g_kept", code=1).output


def test_show_names_the_schedules_that_the_user_asked_for(kerngen: Run) -> None:
    item = "schedule scale when n < 100 and n % 2 == 0 { generic }"
    edit(SOURCE / "scale.kern", f"{SCALE}{item}\n")
    output = kerngen("show", "scale").output
    assert "  1. generic  (asked for)\n" in output
    assert "    generic | when n < 100 and n % 2 == 0 | " in output
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
    assert "  temporary mean f32[m]\n" in output
    assert "stage mean, over i < m" in output
    assert "reads x; writes mean" in output
    assert "at least 4 m n + 4 m bytes, m n + m operations" in output
    assert "  1. reduce  (few rows, too long for a workgroup each)" in output
    assert "    reduce | when m < 64 and n > 65536 | " in output
    assert "  2. rows_lanes1024_subgroups1, with y  (" in output
    assert "  3. rows_lanes512, with y  (" in output
    assert "  4. rows, with y  (2 stages share their rows)" in output
    together = "together at least 8 m n bytes, 3 m n + m operations; mean not stored"
    assert f"     {together}\n" in output
    assert "stage y, over i < m, j < n" in output
    assert "  not fused with mean: it ranges over other axes\n" in output
    assert "  runs with mean; else:\n  1. map" in output
    assert "not map: the stage holds a reduction, 'sum'" in output


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("s[i] = sum[j] a[i, j]; t[i] = 1.0;", ""),
        ("s[i] = 1.0; t[i] = sum[j] a[i, j];", "it holds a reduction"),
        (
            "s[i] = c[i]; t[i] = s[m - 1 - i];",
            "it reads other elements of 's', which is written there",
        ),
        (
            "s[i] = c[m - 1 - i]; t[i] = 1.0; c[i] = 0.0;",
            "it writes 'c', of which other elements are read there",
        ),
        (
            "s[i] = c[i] + d[i] + e[i] + f[i] + g[i]; t[i] = h[i] + k[i];",
            "together they bind more than 8 tensors",
        ),
    ],
)
def test_show_explains_why_a_kernel_is_cut(kerngen: Run, body: str, why: str) -> None:
    names = ", ".join(f"{name}: f32[m]" for name in "defghk")
    edit(
        SOURCE / "cut.kern",
        f"kernel cut(a: f32[m, n], mut c: f32[m], {names}) -> s: f32[m], t: f32[m] "
        f"{{ {body} }}",
    )
    stages = json.loads(kerngen("show", "cut", "--json").stdout)["stages"]
    assert [stage["apart"] for stage in stages] == ["", why][: len(stages)]
    assert len(stages) == 1 + bool(why)


def test_show_as_json(kerngen: Run) -> None:
    shown = json.loads(kerngen("show", "total", "--json").stdout)
    assert (shown["name"], shown["path"]) == ("total", "dsl/deep/total.kern")
    assert shown["doc"] == "Adds up."
    assert shown["uniform"]["fields"][0] == {
        "name": "n", "type": "u32", "offset": 0, "size": 4,
    }  # fmt: skip
    assert all("@compute" in shader["wgsl"] for shader in shown["shaders"])


def test_show_prints_the_lines_of_the_plan_file(kerngen: Run) -> None:
    edit(
        SOURCE / "two.kern",
        "kernel norm(x: f32[m, n], eps: f32 = 1e-5) -> y: f32[m, n] {"
        " let mean[i] = (sum[j] x[i, j]) / f32(n); y[i, j] = x[i, j] - mean[i] + eps; }"
        " kernel lambda(print: f32[n]) -> s: f32[] { s = sum[i] print[i]; }",
    )
    kerngen("build")
    (plan,) = OUT.rglob("two.plan")
    head, *kernels, end = plan.read_text("utf-8").split("\n\n")
    assert head.startswith("kerngen plan")
    assert end.startswith("end ")
    assert len(kernels) == 2
    for name, lines in zip(("norm", "lambda"), kernels, strict=True):
        shown = json.loads(kerngen("show", name, "--json").stdout)
        assert shown["plan"] == lines.split("\n")
        assert f"\nplan\n{lines}\n" in kerngen("show", name).output
        named = {part.split("(")[0] for part in lines.split("| run ")[1:]}
        texts = {each["file"]: each["wgsl"] for each in shown["shaders"]}
        for file, _, entry in (name.partition(":") for name in named):
            assert f"\nfn {entry or 'main'}(" in texts[f"{file}.wgsl"]


def matches(data: Any, type_: Any) -> None:
    """Hold data to a TypedDict, and the data in it to those that it names."""
    if is_typeddict(type_):
        hints = get_type_hints(type_)
        assert data.keys() == hints.keys(), type_
        for key, value in data.items():
            matches(value, hints[key])
    elif get_origin(type_) is list:
        for each in data:
            matches(each, *get_args(type_))
    elif get_origin(type_) is dict:
        for each in data.values():
            matches(each, get_args(type_)[1])
    else:
        assert type(data) is type_, type_


def test_show_as_json_is_typed_and_documented(kerngen: Run) -> None:
    page = (
        (ROOT / "docs" / "schedules.md").read_text("utf-8").split("## In a script")[1]
    )
    shown = json.loads(kerngen("show", "total", "--json").stdout)
    matches(shown, describe.KernelData)
    for type_ in vars(describe).values():
        for key in get_type_hints(type_) if is_typeddict(type_) else ():
            assert f"`{key}`" in page


def test_several_sources_are_checked_as_one(kerngen: Run) -> None:
    edit(SOURCE / "wrong.kern", WRONG)
    edit(SOURCE / "user.kern", 'use "wrong.kern";\n')
    said = kerngen("check", "dsl/scale.kern", "dsl/deep").output
    assert said == "2 files checked: no errors.\n"
    sources = ("dsl/user.kern", "dsl/wrong.kern", "dsl")
    assert kerngen("check", *sources, code=1).output.count("error[KG") == 1
    assert len(json.loads(kerngen("check", *sources, "--json", code=1).stdout)) == 1
    assert "together with files" in kerngen("check", "dsl", "-", code=2).output


def test_the_source_of_a_project_may_be_one_file(kerngen: Run) -> None:
    edit(
        Path("pyproject.toml"),
        '[tool.kerngen]\nsource = "dsl/scale.kern"\nout = "made"\n',
    )
    kerngen("build")
    assert {"scale.py", "manifest.json"} <= files(Path("made")).keys()
    kerngen("build", "--check")
    assert "dsl/scale.kern:1" in kerngen("show", "scale").output
    assert kerngen("check").output == "1 file checked: no errors.\n"


def test_show_tells_two_kernels_of_one_name_apart(kerngen: Run) -> None:
    edit(SOURCE / "other.kern", SCALE)
    output = kerngen("show", "scale", code=1).output
    assert "several kernels 'scale': dsl/other.kern:scale, dsl/scale.kern:sc" in output
    for name in ("other.scale", "dsl/other.kern:scale", "dsl/other.kern"):
        assert "dsl/other.kern:1" in kerngen("show", name).output
    message = "KERNEL names the file 'dsl/other.kern': leave 'dsl' out."
    assert message in kerngen("show", "dsl/other.kern", "dsl", code=2).output


def test_what_python_calls_otherwise_is_said(kerngen: Run) -> None:
    """By every command that might be read before the import is written."""
    notes = (
        "in Python, dsl/my-own.kern is the module 'my_own'.",
        "in Python, kernel 'range' of dsl/my-own.kern is 'range_'.",
        "in Python, struct '_S' of dsl/my-own.kern is 'S_'.",
    )
    struct = "struct _S { a: f32 }\n"
    edit(SOURCE / "my-own.kern", struct + SCALE.replace("scale", "range"))
    for command, kind in (("build", "note"), ("check", "hint")):
        said = kerngen(command).output
        assert [line for line in said.splitlines() if line.startswith(kind)] == [
            f"{kind}: {note}" for note in notes
        ]
    assert "note" not in kerngen("build").output
    assert "in Python: my_own.range_\n" in kerngen("show", "range").output
    assert "in Python" not in kerngen("show", "scale").output
    (module,) = OUT.glob("my_own.py")
    assert "def range_(" in module.read_text("utf-8")
    assert "class S_" in module.read_text("utf-8")


def test_check_has_a_code_for_files_of_one_module(kerngen: Run) -> None:
    edit(SOURCE / "a_b.kern", SCALE)
    edit(SOURCE / "a-b.kern", SCALE)
    edit(SOURCE / "deep.kern", SCALE)
    edit(SOURCE / "__init__.kern", SCALE)
    found = json.loads(kerngen("check", "--json", code=1).stdout)
    assert {each["code"] for each in found} == {"KG0010"}
    places = [[each["path"], *(o["path"] for o in each["related"])] for each in found]
    assert places == [
        ["dsl/__init__.kern"],
        ["dsl/a_b.kern", "dsl/a-b.kern"],
        ["dsl/deep/total.kern", "dsl/deep.kern"],
    ]
    assert "KG0010" not in kerngen("build", code=1).output


def test_check_tells_where_two_files_schedule_the_same_calls(kerngen: Run) -> None:
    own = f"{SCALE}schedule scale when n == 4 {{ map }}\n"
    edit(SOURCE / "scale.kern", own)
    for name, size in (("a", 4), ("b", 8), ("c", 4)):
        schedule = f"schedule scale when n == {size} {{ map }}\n"
        edit(SOURCE / f"{name}.kern", f'use "scale.kern";\n{schedule}')
    assert kerngen("check").output == (
        "hint: 'dsl/a.kern' has a schedule of 'scale' for the same calls, and that "
        "one is used where it fits.\n --> dsl/c.kern:2:30\n\n5 files checked: no errors.\n"
    )


def test_warnings_are_shown_and_fail_nothing(kerngen: Run) -> None:
    edit(SOURCE / "a.kern", "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[-i % n]; }\n")
    said = "warning[KG0417]: '%' rounds toward 0, and what it divides can be negative."
    assert f"{said}\n --> dsl/a.kern:1:45\n" in kerngen("check").stdout
    (listed,) = json.loads(kerngen("check", "--json").stdout)
    assert (listed["severity"], listed["code"]) == ("warning", "KG0417")
    for jobs in ("1", "2"):
        edit(SOURCE / "a.kern", (SOURCE / "a.kern").read_text() + "\n")
        assert (
            f"{said}\n --> dsl/a.kern:1:45\n" in kerngen("build", "--jobs", jobs).stderr
        )


def test_show_of_an_unknown_kernel_suggests_one(kerngen: Run) -> None:
    output = kerngen("show", "scael", code=1).output
    assert "There is no kernel 'scael'. Did you mean 'scale'?" in output


def test_show_of_an_unknown_kernel_lists_those_there_are(kerngen: Run) -> None:
    output = kerngen("show", "nope", code=1).output
    assert "There is no kernel 'nope'. There are " in output
    assert "'scale'" in output


def test_show_of_a_wrong_program_prints_its_diagnostics(kerngen: Run) -> None:
    edit(SOURCE / "a.kern", WRONG)
    assert "dsl/a.kern:1:49" in kerngen("show", "wrong", code=1).stderr
    kerngen("show", "scale")
