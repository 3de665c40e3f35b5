"""A function is added by one row: whatever lists built-ins finds it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import kerngen.runtime as gpu
from kerngen.cli import main
from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.ir.builtins.helpers import Helper
from kerngen.ir.builtins.row import Accuracy, Builtin, Refusal, same
from kerngen.ir.builtins.table import BUILTINS
from kerngen.ir.types import Scalar
from kerngen.source.diagnostic import CompileError
from kerngen.verify import campaign
from tests.budget import sampled
from tests.compile import built, library_of, loaded
from tests.docs.reference import builtins as page
from tests.language.partials import check_partials, kernels_of
from tests.verify.patches import nothing

RIGHT = """\
// x divided by 1 + |y|.
fn softened{S}(x: {T}, y: {T}) -> {T} {{
    return x / (abs(y) + 1.0);
}}
"""


def softened(x: float, y: float) -> float:
    return x / (abs(y) + 1.0)


def is_above_100(y: float) -> bool:
    return y > 100.0


ROW = Builtin(
    name="soften",
    overloads=same(2, Scalar.F32),
    doc="The first argument, divided by 1 more than the size of the second.",
    helper=Helper("softened", RIGHT),
    numpy="np.divide({0}, np.add(np.abs({1}), 1.0))",
    javascript="{0} / (Math.abs({1}) + 1)",
    scalar=softened,
    partials=("1.0 / (1.0 + abs(y))", "-f * sign(y) / (1.0 + abs(y))"),
    accuracy=Accuracy(ulps=4.0, source="a test"),
    domain=((-1e3, 1e3), (-1e3, 1e3)),
    refusals=(Refusal((1,), is_above_100, "{0} is too soft"),),
)

TEXT = """\
const HALF: f32 = soften(1.0, 1.0);

kernel f(x: f32[n], y: f32[n], p: vec3f[n], s: f32) -> z: f32[n], q: vec3f[n] {
    host least = soften(s, 3.0);
    z[i] = soften(x[i], y[i]) + HALF * least;
    q[i] = soften(p[i], vec3f(1.0, 0.0, 3.0));
}
"""


@pytest.fixture(autouse=True)
def row(monkeypatch: pytest.MonkeyPatch) -> Iterator[Builtin]:
    monkeypatch.setitem(BUILTINS, ROW.name, ROW)
    loaded.cache_clear()  # texts that were compiled without the row
    yield ROW
    loaded.cache_clear()


@pytest.mark.parametrize("n", [8, 9], ids=["vectors", "scalars"])
def test_a_device_and_the_reference_compute_it(ctx: gpu.Context, n: int) -> None:
    random = np.random.default_rng(n)
    x, y = random.uniform(-9, 9, (2, n)).astype(np.float32)
    p = random.uniform(-9, 9, (n, 3)).astype(np.float32)
    wanted = (x / (1 + np.abs(y)) + 0.5 * 7.0 / 4.0, p / np.array([2.0, 1.0, 4.0]))
    with built(TEXT) as (kernel,):
        given = ctx.tensor(x), ctx.tensor(y), ctx.tensor(p, gpu.vec3f)
        device = [t.numpy() for t in kernel.launch(ctx, given, (7.0,), (None, None))]
        for found in (device, kernel.reference(x, y, p, s=7.0)):
            for got, exact in zip(found, wanted, strict=True):
                np.testing.assert_allclose(got, exact, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("soften(x[i], 1)", "", ""),
        ("soften(x[i])", "KG0210", "soften"),
        ("soften(x[i], i)", "KG0305", "(f32, f32)"),
        ("soften(x[i], 101.0)", "KG0309", "101.0 is too soft"),
        ("sofetn(x[i], 1.0)", "KG0202", "soften"),
    ],
)
def test_the_checker_knows_it(call: str, code: str, words: str) -> None:
    text = f"kernel f(x: f32[n]) -> y: f32[n] {{ y[i] = {call}; }}"
    if not code:
        loaded(text)
        return
    with pytest.raises(CompileError) as error:
        loaded(text)
    assert [fault.code for fault in error.value.diagnostics] == [code]
    assert words in str(error.value)


@pytest.mark.parametrize("sign", sampled(["-", "+"], 2))
def test_verify_holds_shaders_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sign: str
) -> None:
    monkeypatch.setattr(campaign, "large_sizes", nothing)
    wrong = Helper("softened", RIGHT.replace("+ 1.0", f"{sign} 1.0"))
    monkeypatch.setitem(BUILTINS, ROW.name, replace(ROW, helper=wrong))
    file = tmp_path / "soft.kern"
    file.write_text(
        "kernel f(x: f32[n], y: f32[n]) -> z: f32[n] { z[i] = soften(x[i], y[i]); }\n"
    )
    done = CliRunner().invoke(main, ["verify", str(file), "--examples", "2", "--json"])
    results = json.loads(done.stdout)["results"]
    verdicts = {result["strategy"]: result["verdict"] for result in results}
    assert verdicts["map"] == ("held" if sign == "+" else "wrong")
    assert verdicts["NumPy reference"] == "held"


def test_javascript_computes_it_on_the_host() -> None:
    library = library_of({"f.kern": TEXT})
    compiler = Compiler(library, formatted=False, targets=[Target.TYPESCRIPT])
    module = compiler.compile("f.kern").files["f.js"].decode()
    assert "hosts: (d) => [(d.s / (Math.abs(3) + 1))]," in module


def test_its_derivatives_are_known() -> None:
    check_partials(ROW, kernels_of([ROW])[ROW.name])


def test_the_page_shows_it() -> None:
    line = next(line for line in page.page().splitlines() if "`soften(x, y)`" in line)
    assert "`softened(x, y)`" in line
    assert "4 ulp (a test)" in line
    assert "`1.0 / (1.0 + abs(y))`; `-f * sign(y) / (1.0 + abs(y))`" in line
