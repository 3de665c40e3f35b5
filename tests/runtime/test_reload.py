"""Modules that are generated anew while a program uses them."""

from __future__ import annotations

import importlib
import itertools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.runtime import f32

NUMBERS = itertools.count()
SCALE = "kernel scale(x: f32[n]) -> y: f32[n] {{ y[i] = {} * x[i]; }}\n"


@dataclass
class Package:
    """Kernels that a program imports, and their sources."""

    name: str
    folder: Path

    def build(self, **sources: str | None) -> None:
        """Write or remove sources, and generate all anew."""
        folder = self.folder / "dsl"
        folder.mkdir(exist_ok=True)
        for name, text in sources.items():
            file = folder / f"{name}.kern"
            if text is None:
                file.unlink()
            else:
                file.write_text(text, encoding="utf-8")
        words = ["build", str(folder), "--out", str(self.folder / self.name)]
        done = CliRunner().invoke(main, words, catch_exceptions=False)
        assert done.exit_code == 0, done.output

    def module(self, name: str) -> Any:
        return importlib.import_module(f"{self.name}.{name}")

    def edit(self, name: str, pattern: str, new: str) -> None:
        """Change a generated module by hand, so that it counts as generated anew."""
        file = self.folder / self.name / f"{name}.py"
        text = re.sub(r"sha256 \w+", "sha256 0123", file.read_text("utf-8"), count=1)
        file.write_text(re.sub(pattern, new, text), encoding="utf-8")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Return a package of its own name; no other generated module is looked at."""
    before = dict(sys.modules)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield Package(f"reloaded_{next(NUMBERS)}", tmp_path)
    for name in set(sys.modules) - set(before):
        if name.startswith("reloaded_"):
            del sys.modules[name]


@pytest.fixture
def ones(ctx: gpu.Context) -> gpu.Vector[f32]:
    return ctx.vector(np.ones(3, np.float32), f32)


def test_whoever_imported_it_calls_the_new_kernel(
    package: Package, ones: gpu.Vector[f32]
) -> None:
    package.build(scale=SCALE.format("2.0"), other=SCALE.format("9.0"))
    module, other = package.module("scale"), package.module("other")
    scale, reference = module.scale, module.scale_reference
    assert gpu.reload() == ()
    assert scale(ones).numpy()[0] == 2.0
    for factor in (3.0, 4.0, 5.0):
        package.build(scale=SCALE.format(factor))
        assert scale(ones).numpy()[0] == factor - 1.0, "until it is taken up"
        assert gpu.reload() == (f"{package.name}.scale",)
        assert scale(ones).numpy()[0] == module.scale(ones).numpy()[0] == factor
        assert reference(np.ones(3))[0] == factor
        assert module.scale is scale
    assert other.scale(ones).numpy()[0] == 9.0
    assert gpu.reload() == ()


def test_parameters_and_kernels_come_and_go(
    package: Package, ones: gpu.Vector[f32]
) -> None:
    gone = SCALE.replace("scale", "gone").format("1.0")
    package.build(scale=SCALE.format("2.0") + gone)
    module = package.module("scale")
    scale, was_there = module.scale, module.gone
    package.build(
        scale="/// Twice.\nkernel scale(x: f32[n], k: f32 = 5.0) -> y: f32[n] "
        "{ y[i] = k * x[i]; }\n" + SCALE.replace("scale", "more").format("7.0")
    )
    gpu.reload()
    assert scale(ones).numpy()[0] == 5.0
    assert scale(ones, k=6.0).numpy()[0] == 6.0
    assert scale.__doc__.startswith("Twice.")
    assert module.more(ones).numpy()[0] == 7.0
    assert not hasattr(module, "gone")
    for _ in range(2):
        with pytest.raises(gpu.StateError, match="gone: the kernel is gone"):
            was_there(ones)
        package.build(scale=SCALE.format("2.0"))
        gpu.reload()
    package.build(scale=gone)
    gpu.reload()
    assert was_there(ones).numpy()[0] == 1.0 or module.gone(ones).numpy()[0] == 1.0


def test_a_new_shader_is_never_run_by_an_old_module(
    package: Package, ctx: gpu.Context
) -> None:
    package.build(scale=SCALE.format("2.0"))
    scale = package.module("scale").scale
    package.build(scale=SCALE.format("3.0"))
    with pytest.raises(
        gpu.StateError, match=r"generated again .* 'kerngen\.runtime\.rel"
    ):
        scale(ctx.zeros(4, f32))
    gpu.reload()
    scale(ctx.zeros(4, f32)).numpy()


def names(module: ModuleType) -> dict[str, object]:
    """What a module's names stand for."""
    return dict(module.__dict__)


@pytest.mark.parametrize(
    ("pattern", "new", "says"),
    [
        ("ABI = [0-9]+", "ABI = 999", "has ABI 999"),
        ("_FILES = ", "_FILES = nonsense", "nonsense"),
        ("__all__", "def (", "invalid syntax"),
    ],
)
def test_a_module_that_cannot_run_leaves_the_old_ones(
    pattern: str, new: str, says: str, package: Package, ones: gpu.Vector[f32]
) -> None:
    package.build(scale=SCALE.format("2.0"), other=SCALE.format("9.0"))
    modules: list[Any] = [package.module("other"), package.module("scale")]
    before = [names(module) for module in modules]
    assert [module.scale(ones).numpy()[0] for module in modules] == [9.0, 2.0]
    package.build(other=SCALE.format("8.0"), scale=SCALE.format("3.0"))
    package.edit("scale", pattern, new)
    for _ in range(2):
        with pytest.raises(gpu.ReloadError, match=f"scale' can't be run.*{says}"):
            gpu.reload()
        assert [names(module) for module in modules] == before
        assert [module.scale(ones).numpy()[0] for module in modules] == [9.0, 2.0]
    package.build()
    assert len(gpu.reload()) == 2
    assert modules[1].scale(ones).numpy()[0] == 3.0


def test_what_was_compiled_of_old_kernels_is_dropped(package: Package) -> None:
    package.build(scale=SCALE.format("1.5"), other=SCALE.format("1.25"))
    scale, other = package.module("scale").scale, package.module("other").scale
    with gpu.open(adapter="software") as ctx:
        kept = other(ctx.zeros(3, f32)).numpy()
        caches = ctx.backend.caches
        sizes: list[list[str]] = []
        for factor in (2.5, 3.5, 4.5):
            scale(ctx.zeros(3, f32)).numpy()
            package.build(scale=SCALE.format(factor))
            gpu.reload()
            sizes.append([repr(c).split(",")[0] for c in caches.values()][:3])
        assert sizes[0] == sizes[1] == sizes[2]
        assert "plans: 1 entries" in sizes[2][0], "that of the other module"
        np.testing.assert_array_equal(other(ctx.zeros(3, f32)).numpy(), kept)


def test_structs_come_from_the_new_module_of_the_other_file(package: Package) -> None:
    struct = "struct Pair {{ a: f32, b: {} }}\n"
    user = (
        'use "types.kern";\nkernel first(p: Pair[n]) -> y: f32[n] { y[i] = p[i].a; }\n'
    )
    package.build(a_user=user, types=struct.format("f32"))
    first, types = package.module("a_user"), package.module("types")
    old = types.Pair
    package.build(types=struct.format("i32"))
    names = (f"{package.name}.a_user", f"{package.name}.types")
    assert gpu.reload() == names
    assert types.Pair is first.Pair is not old


def test_a_module_without_its_file_stays(
    package: Package, ones: gpu.Vector[f32]
) -> None:
    package.build(scale=SCALE.format("2.0"), other=SCALE.format("9.0"))
    scale = package.module("scale").scale
    assert scale(ones).numpy()[0] == 2.0
    package.build(scale=None)
    assert gpu.reload() == ()
    assert scale(ones).numpy()[0] == 2.0


def test_words_of_the_user_are_no_stamp(package: Package) -> None:
    fake = "//! Generated by kerngen from x (sha256 abc).\n"
    package.build(scale=fake + SCALE.format("2.0"))
    module: ModuleType = package.module("scale")
    assert gpu.reload() == ()
    package.build(scale=fake + SCALE.format("3.0"))
    assert gpu.reload() == (module.__name__,)


@pytest.mark.parametrize("adapter", ["device", "reference"])
def test_captures_of_old_kernels_end(
    package: Package, ctx: gpu.Context, adapter: str
) -> None:
    package.build(scale=SCALE.format("2.0"), other=SCALE.format("9.0"))
    module, other = package.module("scale"), package.module("other")
    here = ctx if adapter == "device" else gpu.open(adapter="reference")
    ones = here.vector(np.ones(3, np.float32), f32)
    with here.capture() as old:
        module.scale(ones)
    with here.capture() as kept:
        result = other.scale(ones)
    package.build(scale=SCALE.format("3.0"))
    assert gpu.reload() == (f"{package.name}.scale",)
    with pytest.raises(gpu.StateError, match="'scale' was reloaded"):
        old.replay()
    kept.replay()
    np.testing.assert_array_equal(result.numpy(), np.full(3, 9.0))
    with here.capture() as new:
        result = module.scale(ones)
    new.replay()
    np.testing.assert_array_equal(result.numpy(), np.full(3, 3.0))
