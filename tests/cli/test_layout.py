"""`kerngen layout`: its tables, pictures, data and explanations, and hints of `check`."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

from tests.cli.sample import SOURCE, WRONG, Run, edit

pytestmark = pytest.mark.usefixtures("project")

SCENE = """const MOST: u32 = 4;

struct Light { position: vec3f, power: f32, color: vec3f }

struct Scene {
    count: u32,
    lights: Light[MOST],
    weights: f32[5],
    view: mat3x2f,
    @size(24) exposure: f32,
    @align(32) tint: vec3f,
}

kernel shade(scene: Scene, x: Light[n], gain: f32) -> y: f32[n] {
    y[i] = gain * x[i].power * scene.exposure;
}
"""
FILE = SOURCE / "scene.kern"

LIGHT = """\
Light  32 bytes, aligned to 16; in storage and uniform buffers alike
     offset   size  align  padding  field
  a       0     12     16        0  position: vec3f
  b      12      4      4        0  power: f32
  c      16     12     16        4  color: vec3f

   0  aaaa aaaa aaaa bbbb
  16  cccc cccc cccc ....
"""


@pytest.fixture(autouse=True)
def scene(project: object) -> None:
    """Add a file of structs to the project."""
    del project
    edit(FILE, SCENE)


def test_a_table_and_a_picture(kerngen: Run) -> None:
    output = kerngen("layout", FILE, "Light").output
    assert output.startswith(LIGHT)
    assert "a dot is padding" in output
    assert "\x1b" not in output


def test_a_terminal_has_colours(kerngen: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output = kerngen("layout", FILE, "Light").output
    assert "\x1b[36ma\x1b[0m" in output
    assert re.sub(r"\x1b\[[\d;]*m", "", output).startswith(LIGHT)


def test_address_spaces_that_differ_have_a_table_each(kerngen: Run) -> None:
    output = kerngen("layout", FILE, "Scene").output
    assert "Scene  256 bytes, aligned to 32; in storage buffers: tensors\n" in output
    assert "weights: f32[5]  (one every 4 bytes)\n" in output
    assert "SceneUniform  352 bytes, aligned to 32; in uniform buffers" in output
    assert "weights: f32[5]  (one every 16 bytes)\n" in output
    assert "view: mat3x2f  (a column every 16 bytes)\n" in output


@pytest.mark.parametrize("name", ["shade", "ShadeUniform"])
def test_the_parameters_of_a_kernel(name: str, kerngen: Run) -> None:
    output = kerngen("layout", FILE, name).output
    assert output.startswith("ShadeUniform  ")
    assert "scene: Scene\n" in output
    assert "gain: f32\n" in output


def test_everything_without_a_name(kerngen: Run) -> None:
    output = kerngen("layout", FILE).output
    titles = re.findall(r"^(\w+)  \d+ bytes, aligned", output, re.MULTILINE)
    assert titles == ["Light", "Scene", "SceneUniform", "ShadeUniform"]


def test_a_long_struct_is_cut_in_the_middle(kerngen: Run) -> None:
    edit(FILE, "struct Long { a: u32, b: vec3f[1000000], c: u32 }\n")
    output = kerngen("layout", FILE).output
    assert "        0  aaaa .... .... ....\n" in output
    assert "more bytes\n" in output
    assert " 16000016  cccc .... .... ....\n" in output
    assert len(output.splitlines()) < 40


def test_data_for_scripts_makes_the_dtype(kerngen: Run) -> None:
    data = json.loads(kerngen("layout", FILE, "--json").stdout)
    assert data["path"] == "dsl/scene.kern"
    light, *_ = data["structs"]
    assert (light["name"], light["space"], light["size"]) == ("Light", "storage", 32)
    fields: list[dict[str, Any]] = light["fields"]
    described: Any = {
        "names": [field["name"] for field in fields],
        "formats": [{"f32": "<f4", "vec3f": ("<f4", (3,))}[f["type"]] for f in fields],
        "offsets": [field["offset"] for field in fields],
        "itemsize": light["size"],
    }
    assert np.dtype(described)["color"] == np.dtype(("<f4", (3,)))
    spaces = [(each["struct"], each["space"]) for each in data["structs"]]
    assert spaces == [
        ("Light", "storage"),
        ("Light", "uniform"),
        ("Scene", "storage"),
        ("Scene", "uniform"),
        ("shade", "uniform"),
    ]
    (lights,) = (f for f in data["structs"][3]["fields"] if f["name"] == "lights")
    assert (lights["lengths"], lights["strides"]) == ([4], [32])
    assert [field["name"] for field in lights["fields"]] == [
        "position",
        "power",
        "color",
    ]
    assert all(rule["section"] for rule in lights["rules"])


EXPLAINED = {
    "Light.position": ["It starts at 0: it is the first field."],
    "Light.power": [
        "'position', starts at 0 and takes 12 bytes, up to 12.",
        "It starts at 12, right there: an f32 starts at a multiple of 4, its size",
    ],
    "color": [
        "In storage and uniform buffers alike",
        (
            "The 4 bytes behind it are padding: the size of a struct is a multiple of its "
            "alignment, 16, so it ends at 32."
        ),
        "A vec3 is 3 scalars long, and aligned to 4 scalars. (WGSL 14.4.1",
    ],
    "Scene.weights": [
        "In a storage buffer, where tensors are",
        "It takes 20 bytes: 5 elements, each an f32 of 4 bytes, one every 4.",
        "In a uniform buffer, where parameters are",
        (
            "It takes 80 bytes: 5 elements, each an f32 of 4 bytes, one every 16: in a "
            "uniform buffer, elements lie a multiple of 16 bytes apart."
        ),
    ],
    "Scene.view": [
        (
            "It starts at 168: a mat3x2f starts at a multiple of 8, as each of its columns "
            "does, a vec2f, and 168 is the first from 164 on. The 4 bytes between 'weights' "
            "and it are padding."
        ),
        "In a uniform buffer kerngen keeps it as these columns",
    ],
    "Scene.exposure": ["which '@size(24)' asks for"],
    "Scene.tint": ["'@align(32)' asks for a multiple of 32", "'@size(24)' keeps those"],
    "Scene.lights[2].color": [
        (
            "From the start of 'Scene': 'lights' at 16, the element 64 further, 'color' at "
            "16; together 96."
        )
    ],
    "shade.gain": ["'scene', starts at 32 and takes 352 bytes, up to 384."],
}


@pytest.mark.parametrize("field", EXPLAINED)
def test_why_a_field_lies_where_it_does(field: str, kerngen: Run) -> None:
    output = kerngen("layout", FILE, "--explain", field).output
    for sentence in EXPLAINED[field]:
        assert sentence in output


def test_a_struct_behind_which_a_uniform_buffer_has_padding(kerngen: Run) -> None:
    edit(FILE, "struct Inner { a: f32 }\nstruct S { i: Inner, x: f32 }\n")
    output = kerngen("layout", FILE, "S", "--explain", "x").output
    assert "It starts at 4, right there" in output
    assert "takes 16 bytes, up to 16." in output
    edit(FILE, "struct Inner { a: f32 }\nstruct S { @size(20) i: Inner, x: f32 }\n")
    output = kerngen("layout", FILE, "S", "--explain", "x").output
    assert "starts a multiple of 16 behind its start: at 32." in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Ligth"], "There is no struct 'Ligth'. Did you mean 'Light'?"),
        (["Light", "--explain", "colour"], "There is no field 'colour'. Did you mean"),
        (["--explain", "Light.colour"], "'Light' has no field 'colour'. Did you mean"),
        (
            ["--explain", "Sene.view"],
            "There is no struct 'Sene'. Did you mean 'Scene'?",
        ),
        (
            ["--explain", "Light"],
            "'Light' is a struct. Say which field of it: 'Light.p",
        ),
        (["--explain", "Light.color.x"], "of type 'vec3f', which has no fields."),
        (["--explain", "Scene.lights[4]"], "so the last one is 3, not 4."),
        (["--explain", "Scene.count[0]"], "'u32', which has fewer axes than that."),
        (["--explain", "a..b"], "'a..b' is not a field."),
    ],
)
def test_what_is_not_there(arguments: list[str], message: str, kerngen: Run) -> None:
    assert message in kerngen("layout", FILE, *arguments, code=1).output


def test_fields_of_several_structs_are_asked_about_by_both(kerngen: Run) -> None:
    edit(FILE, "struct A { x: f32 }\nstruct B { x: f32 }\n")
    output = kerngen("layout", FILE, "--explain", "x", code=1).output
    assert "Several structs have 'x': 'A.x', 'B.x'." in output


def test_a_struct_of_another_file_is_shown_where_it_is_used(kerngen: Run) -> None:
    edit(SOURCE / "own.kern", 'use "scene.kern";\nstruct Own { light: Light }\n')
    own = SOURCE / "own.kern"
    assert kerngen("layout", own, "Light").output.startswith(LIGHT)
    assert "Light  " not in kerngen("layout", own).output
    output = kerngen("layout", own, "--explain", "Own.light.power").output
    assert "From the start of 'Own': 'light' at 0, 'power' at 12" in output


def test_a_file_without_structs_a_folder_and_faults(kerngen: Run) -> None:
    edit(FILE, "const ONE: f32 = 1.0;\n")
    assert "There are no structs in" in kerngen("layout", FILE, code=1).output
    assert "is a folder" in kerngen("layout", SOURCE, code=2).output
    edit(FILE, WRONG)
    assert "error[KG" in kerngen("layout", FILE, code=1).output


LOOSE = "struct P { a: f32, v: vec3f, b: f32, c: f32, d: vec2f }\n"
HINT = (
    "hint: 'P' takes 48 bytes; with its fields in the order 'a', 'b', 'd', 'v', 'c' it "
    "would take 32.\n"
)


def test_a_hint_where_another_order_is_smaller(kerngen: Run) -> None:
    edit(FILE, LOOSE)
    assert kerngen("layout", FILE).output.endswith(HINT)
    (hint,) = json.loads(kerngen("layout", FILE, "--json").stdout)["hints"]
    assert hint == {
        "struct": "P",
        "space": "storage",
        "size": 48,
        "better": 32,
        "order": ["a", "b", "d", "v", "c"],
    }


def test_check_has_the_hint_too_and_fails_for_nothing(kerngen: Run) -> None:
    edit(FILE, LOOSE)
    output = kerngen("check", FILE).output
    assert output.startswith(f"{HINT} --> dsl/scene.kern:1:8\n")
    assert output.endswith("1 file checked: no errors.\n")
    (told,) = json.loads(kerngen("check", FILE, "--json").stdout)
    assert told["severity"] == "hint"


def test_a_hint_for_parameters_where_that_is_another(kerngen: Run) -> None:
    kernel = "kernel k(s: S, x: f32[n]) -> y: f32[n] { y[i] = s.a * x[i]; }\n"
    struct = "struct S { a: f32, w: f32[5], b: f32 }\n"
    edit(FILE, struct + kernel)
    output = kerngen("layout", FILE).output
    assert "hint: As a parameter, 'S' takes 112 bytes; with its fields" in output
    assert "order 'a', 'b', 'w' it would take 96." in output
    edit(FILE, struct)
    assert "hint" not in kerngen("layout", FILE).output
