"""The types of generated modules and of the npm package, by the TypeScript compiler."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from kerngen.emit.targets import Target
from tests.emit.struct_source import SOURCE
from tests.web.browser import ROOT
from tests.web.built import build

pytestmark = pytest.mark.web

RIGHT = """
import { open, type Matrix } from "kerngen";
import { softmax } from "./softmax.js";
import { adamw } from "./optim.js";
import { Light, Particle, step } from "./structs.js";
import { Held, inherited } from "./inherited.js";

const ctx = await open();
const x = ctx.tensor(new Float32Array(6), [2, 3]);
const y: Matrix<"f32"> = softmax(x, { out: ctx.empty([2, 3], "f32") });
const data: Float32Array = await y.read();
const v = ctx.zeros([3], "f32");
adamw(v, v, v, v, { lr: 0.1, step: 1, ctx });
const half: Light["color"] = [1, 2, 3];
const bytes: Uint8Array = Particle.pack({ pos: half, mass: 1, vel: [0, 0, 0], id: 1 });
const some = ctx.tensor(Particle.unpack(bytes), [1], Particle);
const ids: number[] = (await some.read()).map((each) => each.id);
const flat: Matrix<"f32"> = v.reshape([1, 3]);
const sum = inherited(v, { valueOf: 2 }).y;
inherited(sum.reshape([3]), { valueOf: 2, toString: 3, out: { y: v, constructor: v } });
const one: number = Held.unpack(bytes)[0]!.constructor;
const shaders: string[] = ctx.choices(softmax, { m: 2, n: 3 });
console.log(data, ids, flat, one, step, shaders);
"""

INHERITED = """
struct Held { constructor: f32 }
kernel inherited(hasOwnProperty: f32[isPrototypeOf], toString: f32 = 1.0, valueOf: u32)
        -> y: f32[isPrototypeOf], constructor: f32[isPrototypeOf] {
    y[i] = hasOwnProperty[i] * toString + f32(valueOf);
    constructor[i] = y[i];
}
"""
"""Names that all objects have something of."""

WRONG = {
    "softmax(ctx.zeros([2], 'f32'));": "a vector is no matrix",
    "softmax(ctx.zeros([2, 2], 'i32'));": "integers are no floats",
    "adamw(v, v, v, v, { lr: 0.1 });": "step has no default",
    "softmax(x, { axis: 1 });": "there is no such option",
    "ctx.zeros([2], 'f64');": "there is no such element",
    "Particle.pack({ pos: [1, 2], mass: 1, vel: [0, 0, 0], id: 1 });": "two are no vec3f",
    "const n: Int32Array = await x.read();": "floats are read as floats",
}


def errors(folder: Path, *files: str) -> str:
    config = json.loads((ROOT / "web" / "tsconfig.json").read_text("utf-8"))
    options = {**config["compilerOptions"], "noEmit": True, "declaration": False}
    options = {k: v for k, v in options.items() if k not in {"rootDir", "outDir"}}
    text = json.dumps({"compilerOptions": options, "files": files})
    (folder / "tsconfig.json").write_text(text, "utf-8")
    tsc = ROOT / "web" / "node_modules" / ".bin" / "tsc"
    done = subprocess.run(
        [tsc, "-p", folder], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(
    package: Path, generated: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    assert package.is_dir()
    out = tmp_path_factory.mktemp("types")
    for source in (ROOT / "dsl").glob("*.kern"):
        shutil.copy(generated / f"{source.stem}.d.ts", out)
    (out / "structs.kern").write_text(SOURCE, "utf-8")
    (out / "inherited.kern").write_text(INHERITED, "utf-8")
    build([out / "structs.kern", out / "inherited.kern"], out, Target.TYPESCRIPT)
    (out / "package.json").write_text('{"type": "module"}', "utf-8")
    (out / "node_modules").mkdir()
    (out / "node_modules" / "kerngen").symlink_to(
        ROOT / "web", target_is_directory=True
    )
    return out


def test_all_that_is_generated_is_typed(folder: Path) -> None:
    (folder / "right.ts").write_text(RIGHT, "utf-8")
    modules = [path.name for path in sorted(folder.glob("*.d.ts"))]
    assert len(modules) > 20
    assert errors(folder, "right.ts", *modules) == ""


def test_wrong_calls_are_errors(folder: Path) -> None:
    lines = [f"// @ts-expect-error {why}\n{line}" for line, why in WRONG.items()]
    (folder / "wrong.ts").write_text(RIGHT + "\n".join(lines), "utf-8")
    assert errors(folder, "wrong.ts") == ""
