"""Measure how long structs take to be made, packed and unpacked, in microseconds.

    python tools/bench_pack.py

On the dispatch path, packing a struct of eight fields is to take at most 2 microseconds.
"""

from __future__ import annotations

import importlib
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import repeat
from typing import Any

from kerngen.compiler import compile_text

SOURCE = """
struct Particle {
    pos: vec3f, mass: f32, vel: vec3f, id: u32, color: vec4f, uv: vec2f, age: f32, kind: i32,
}
struct Scalars { a: f32, b: f32, c: f32, d: f32, e: u32, f: u32, g: i32, h: i32 }
struct Camera { view: mat4x4f, proj: mat4x4f, eye: vec3f, near: f32, far: f32 }
struct Scene { camera: Camera, lights: Particle[4], weights: f32[5] }
kernel shade(x: f32[n], scene: Scene, one: Particle, tint: vec3f, gain: f32) -> y: f32[n] {
    y[i] = x[i] * gain * tint.x * scene.weights[1] * one.mass;
}
"""


CALLS, RUNS = 2000, 15


def microseconds(work: Callable[[], object]) -> float:
    """Return the time of one call, the best of several runs."""
    return min(repeat(work, number=CALLS, repeat=RUNS)) / CALLS * 1e6


def build() -> Any:
    """Return the imported module of the source."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "bench_module.py"
        file.write_text(compile_text(SOURCE, "bench.kern").binding, encoding="utf-8")
        sys.path.insert(0, folder)
        return importlib.import_module(file.stem)


def main() -> None:
    """Print a table: the structs, and what is done with them."""
    ArgumentParser(description=__doc__).parse_args()
    module = build()
    columns = ((1.0, 0.0, 0.0, 0.0),) * 4
    particle = module.Particle(
        (1.0, 2.0, 3.0), 1.0, (0.5, 0.0, 0.0), 7, (1.0,) * 4, (0.5, 0.5), 2.0, -1
    )
    camera = module.Camera(columns, columns, (1.0, 2.0, 3.0), 0.1, 100.0)
    instances = (
        particle,
        module.Scalars(1.0, 2.0, 3.0, 4.0, 5, 6, 7, 8),
        camera,
        module.Scene(camera, (particle,) * 4, (1.0,) * 5),
    )
    print(f"{'struct':10} {'bytes':>6} {'pack_into':>10} {'make':>8} {'unpack':>8}")
    for value in instances:
        _print_row(value)
    kernel = module._SHADE  # noqa: SLF001 - the description that calls launch
    scalars = (instances[-1], particle, (1.0, 2.0, 3.0), 0.5)
    buffer = bytearray(kernel.uniform.SIZE)
    values = kernel.hosts(5, *scalars)
    time = microseconds(lambda: kernel.uniform.pack_values_into(buffer, 0, values))
    print(
        f"{'ShadeUniform':10} {kernel.uniform.SIZE:4} {time:10.2f}  (the dispatch path)"
    )


def _print_row(value: Any) -> None:
    cls: Any = value.__class__
    buffer, data = bytearray(cls.SIZE + 16), value.pack()
    fields = [getattr(value, field.name) for field in cls.FIELDS]
    times = (
        microseconds(lambda: value.pack_into(buffer, 16)),
        microseconds(lambda: cls(*fields)),
        microseconds(lambda: cls.unpack(data)),
    )
    shown = "{:10.2f} {:8.2f} {:8.2f}".format(*times)
    print(f"{cls.__name__:10} {cls.SIZE:6} {shown}")


if __name__ == "__main__":
    main()
