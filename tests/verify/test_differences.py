"""Derived gradients held to differences: those that are right, and planted faults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from click.testing import CliRunner

from kerngen.cli import main
from kerngen.gradient import adjoint
from kerngen.gradient.terms import Term
from kerngen.runtime.reference import doubled
from kerngen.source.text import Source
from kerngen.syntax.library import Library
from kerngen.verify import campaign, differences
from kerngen.verify.differences import InnerProducts, products
from kerngen.verify.subjects import subjects
from tests.budget import sampled
from tests.compile import built, library_of
from tests.gradient.cases import FILES_OF_DSL, STRUCTS, all_of_dsl, case_of
from tests.project.tree import ROOT
from tests.verify.patches import nothing, raising

OF_ANOTHER_FILE = """
use "base.kern";
// Python has these names at the top of the module: arguments are called otherwise here.
const beta: f32 = 2.0;
const t: f32 = 3.0;
kernel own(x: f32[n]) -> y: f32[n] { y[i] = beta * t * x[i]; }
kernel scaled_gradient = gradient of scaled by x, w, beta given t, y;
schedule scaled_gradient, own { generic }
"""
BASE = """
kernel scaled(x: f32[m, n], w: f32[n], beta: f32, ids: u32[m]) -> y: f32[m], z: f32[m] {
    let t[i] = exp(sum[j] x[i, j] * w[j] / f32(n));
    y[i] = t[i] / (beta + t[i] * t[i]);
    z[i] = if x[i, 0] > 0.5 { y[ids[i]] } else { -w[0] };
}
kernel total(x: f32[m, n]) -> y: f32[] { y = sum[i, j] x[i, j]; }
kernel total_gradient = gradient of total by x;
schedule scaled, total, total_gradient { generic }
"""
OF_STRUCTS = STRUCTS.read_text("utf-8") + """
kernel energy_gradient = gradient of energy by b, s;
kernel moved_gradient = gradient of moved by b, d;
kernel furthest_gradient = gradient of furthest by b, d;
schedule energy, moved, furthest { generic }
schedule energy_gradient, moved_gradient, furthest_gradient { generic }
"""
RULE: Any = vars(adjoint.ReadAdjoints)["_add"]
GIVEN: Any = vars(differences)["_given"]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with the gradient of a kernel of another file; few shaders, to be quick."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(campaign, "large_sizes", nothing)
    Path("base.kern").write_text(BASE, encoding="utf-8")
    Path("main.kern").write_text(OF_ANOTHER_FILE, encoding="utf-8")
    return "main.kern"


def rows_of(*words: str) -> list[Any]:
    arguments = ["verify", *words, "--json", "--examples", "3"]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    rows = json.loads(result.stdout)["results"]
    return [row for row in rows if row["strategy"] == "differences"]


def test_right_gradients_are_held(file: str) -> None:
    """By each input of several calls; other kernels have no such row."""
    (row,) = rows_of(file, "--kernel", "scaled_gradient")
    assert (row["verdict"], row["calls"], row["elements"]) == ("held", 3, 9)
    assert row["worst"] < 0.1
    (row,) = rows_of("base.kern", "--kernel", "total_gradient")
    assert (row["kernel"], row["verdict"]) == ("total_gradient", "held")


def test_a_wrong_gradient_is_found(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The derivation adds a part twice: kernel, shaders and reference all agree."""

    def doubled(self: adjoint.ReadAdjoints, name: str, term: Term) -> None:
        RULE(self, name, term)
        if name == "w":
            RULE(self, name, term)

    monkeypatch.setattr(adjoint.ReadAdjoints, "_add", doubled)
    (row,) = rows_of(file, "--kernel", "scaled_gradient")
    found = row["counterexample"]
    assert row["verdict"] == "wrong"
    assert found["kind"] == "gradient"
    assert found["text"].startswith("the gradient by 'w' is ")
    assert found["got"] != pytest.approx(found["expected"], rel=1e-4)
    assert set(found["sizes"]) == {"m", "n"}
    with pytest.raises(AssertionError):
        exec(found["code"], {})


def test_the_bound_of_values_that_are_0_is_not_0() -> None:
    """The weights of the outputs round, too."""
    text = """
        kernel nothing(x: f32[n]) -> y: f32[n] { y[i] = max(x[i], 9.0) - 9.0; }
        kernel nothing_gradient = gradient of nothing by x;
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        sizes, (product,) = products(subject, 0)
    assert sizes
    assert (product.expected, product.got) == (0.0, 0.0)
    assert product.bound > 0.0


@pytest.mark.parametrize("seed", [0, 1])
def test_numbers_of_structs_are_drawn(seed: int) -> None:
    """Not left at 0, where the gradient by them would be 0 however wrong it is."""
    text = """
        struct Gains { each: f32[3], last: f32 }
        kernel squares(x: f32[n], g: Gains) -> y: f32[n] {
            y[i] = x[i] * (sum[k] g.each[k] * g.each[k]) + g.last * g.last;
        }
        kernel squares_gradient = gradient of squares by g;
        schedule squares, squares_gradient { generic }
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        _, (product,) = products(subject, seed)
    assert product.is_held
    assert abs(product.expected) > 100 * product.bound


@pytest.mark.nightly
def test_gradients_by_structs_are_held(file: str) -> None:
    """By members of tensors and of a parameter, and of what returns structs."""
    Path(file).write_text(OF_STRUCTS, encoding="utf-8")
    found = {row["kernel"]: row for row in rows_of(file)}
    for kernel in ("energy_gradient", "moved_gradient", "furthest_gradient"):
        row = found[kernel]
        assert (row["verdict"], row["calls"], row["elements"]) == ("held", 3, 6)
        assert row["worst"] < 0.1


@pytest.mark.parametrize("member", sampled(["b.pos", "s.weights[]", "b.mass"], 3))
def test_a_wrong_gradient_by_a_member_is_found(
    file: str, member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One member gets its part twice."""

    def doubled(self: adjoint.ReadAdjoints, name: str, term: Term) -> None:
        RULE(self, name, term)
        if name == member:
            RULE(self, name, term)

    monkeypatch.setattr(adjoint.ReadAdjoints, "_add", doubled)
    Path(file).write_text(OF_STRUCTS, encoding="utf-8")
    (row,) = rows_of(file, "--kernel", "energy_gradient")
    assert row["verdict"] == "wrong"
    text = row["counterexample"]["text"]
    assert text.startswith(f"the gradient by '{member[0]}' is ")
    with pytest.raises(AssertionError):
        exec(row["counterexample"]["code"], {})


@pytest.mark.usefixtures("file")
def test_a_call_that_raises_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(campaign, "products", raising(ZeroDivisionError("no")))
    (row,) = rows_of("base.kern", "--kernel", "total_gradient")
    assert row["counterexample"]["kind"] == "raised"


def test_an_error_is_a_share_of_its_tolerance() -> None:
    """The tolerance is 0 where all values are, as of a convolution without taps."""
    assert InnerProducts("x", 1.0, 1.5, 2.0).share == 0.25
    nothing_ = InnerProducts("x", 0.0, 0.0, 0.0)
    assert nothing_.share == 0
    assert nothing_.is_held


def test_scalars_without_a_default_are_drawn_in_order() -> None:
    """A clamp has no meaning where its lower end is above the upper one."""
    text = """
        kernel clamped(x: f32[n], low: f32, high: f32, scale: f32 = 3.0) -> y: f32[n] {
            y[i] = scale * clamp(x[i], low, high);
        }
        kernel clamped_gradient = gradient of clamped by x;
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        for seed in range(4):
            given = GIVEN(subject, seed)
            assert given is not None
            low, high, scale = given.scalars
            assert 0.3 <= low <= high <= 0.9
            assert scale == 3.0


def test_numbers_are_positive_by_even_seeds() -> None:
    """None is near 0, where a slope may be of any size."""
    text = """
        kernel dense(x: f32[m, n], w: f32[n, p]) -> y: f32[m, p] {
            y[i, j] = sum[q] x[i, q] * w[q, j];
        }
        kernel dense_gradient = gradient of dense by x, w;
        schedule dense, dense_gradient { generic }
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        calls = [GIVEN(subject, seed) for seed in range(6)]
    for seed, given in enumerate(calls):
        assert all(2 <= length <= 7 for _, length in given.sizes)
        numbers = np.concatenate([each.reshape(-1) for each in given.arrays])
        assert np.abs(numbers).min() >= 0.2
        assert np.abs(numbers).max() <= 1.8
        assert (numbers < 0).any() == (seed % 2 == 1)


@pytest.mark.parametrize(
    ("length", "value", "held"),
    [
        (1, "2.0 * x[i]", [True]),
        (2, "log(-x[i] * x[i])", []),
    ],
)
def test_axes_of_one_element_are_compared_and_what_is_nan_is_not(
    length: int, value: str, held: list[bool]
) -> None:
    """Where the function is NaN, it has no slope to miss."""
    text = f"""
        kernel f(x: f32[n]) -> y: f32[n] {{ require n == {length}; y[i] = {value}; }}
        kernel g = gradient of f by x;
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        sizes, several = products(subject, 0)
    assert sizes == (("n", length),)
    assert [each.is_held for each in several] == held


def test_subscripts_are_those_of_the_longest_axis() -> None:
    text = """
        kernel f(x: f32[n], at: u32[m]) -> y: f32[m] { y[i] = x[at[i]]; }
        kernel g = gradient of f by x;
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        calls = [GIVEN(subject, seed) for seed in range(12)]
    longest = [max(length for _, length in each.sizes) for each in calls]
    pairs = zip((each.arrays[1] for each in calls), longest, strict=True)
    ends = [(int(at.min()), int(at.max()) - most) for at, most in pairs]
    assert (min(low for low, _ in ends), max(high for _, high in ends)) == (0, -1)


def test_kernels_of_empty_axes_alone_are_not_called() -> None:
    text = """
        kernel rest(x: f32[n]) -> y: f32[n] { require n == 0; y[i] = 2.0 * x[i]; }
        kernel rest_gradient = gradient of rest by x;
    """
    with subjects(library_of({"a.kern": text}), ["a.kern"]) as found:
        (subject,) = (x for x in found["a.kern"] if x.forward)
        assert GIVEN(subject, 0) is None


def test_structs_in_structs_are_doubled_and_given_back() -> None:
    """Members of structs are arrays of structs, too."""
    text = """
        struct Gain { low: f32, high: f32 }
        struct Bank { gains: Gain[2], count: i32 }
        kernel banked(x: f32[n], b: Bank) -> y: f32[n] {
            y[i] = x[i] * b.gains[0].low + b.gains[1].high * f32(b.count);
        }
    """
    with built(text) as (kernel,):
        record = np.zeros((), doubled(kernel.scalars[0].element.DTYPE))
        record["gains"]["low"], record["gains"]["high"] = [2.0, 3.0], [4.0, 5.0]
        record["count"] = 2
        values = {"x": np.array([1.0, 1e-9]), "b": record}
        found = differences.results(kernel, values)["y"]
    np.testing.assert_array_equal(found, [12.0, 2e-9 + 10.0])


def test_rounding_is_relative_to_what_is_subtracted() -> None:
    """Of weights and values of any sign."""
    sizes = vars(differences)["_sizes"]
    weights, values = {"y": np.array([2.0, -3.0])}, {"y": np.array([-0.5, 4.0])}
    assert sizes(weights, values) == 2 * 1.5 + 3 * 5.0


def test_a_fault_has_both_products_and_no_place() -> None:
    fault = InnerProducts("x", 3.0, 2.0, 0.5).fault
    assert (fault.kind, fault.path, fault.place) == ("gradient", "", ())
    assert (fault.got, fault.expected, fault.bound) == (2.0, 3.0, 0.5)


def test_what_jumps_is_not_compared(file: str) -> None:
    """Differences of a staircase say nothing of its slope."""
    Path(file).write_text(
        "kernel f(x: f32[n]) -> y: f32[n] { y[i] = x[i] + floor(1e9 * x[i]); }\n"
        "kernel g = gradient of f by x;\nschedule g { generic }\n",
        encoding="utf-8",
    )
    (row,) = rows_of(file, "--kernel", "g")
    assert (row["verdict"], row["calls"]) == ("no call found", 0)


JUMPS: Final = {"take_chunks_by_all"}
"""Gradients of kernels of which no call is smooth: past the end of a row it writes -inf."""


@pytest.mark.nightly
@pytest.mark.parametrize("name", FILES_OF_DSL)
def test_gradients_of_all_of_dsl(name: str) -> None:
    """None is called wrong, and each is compared at some calls."""
    folder = ROOT / "dsl"
    text = (folder / f"{name}.kern").read_text("utf-8")
    for file, kernel in all_of_dsl():
        if file == name and f"kernel {kernel}(" in text:  # not `f_kept`
            by = ", ".join(case_of(file, kernel).by)
            text += f"kernel {kernel}_by_all = gradient of {kernel} by {by};\n"
    names = [path.name for path in folder.glob("*.kern")]

    def find(wanted: str) -> Source:
        own = wanted == f"{name}.kern"
        return Source(wanted, text if own else (folder / wanted).read_text("utf-8"))

    with subjects(Library(find, names, None), [f"{name}.kern"]) as found:
        derived = [each for each in found[f"{name}.kern"] if each.forward]
        for subject in derived:
            results = [each for seed in range(6) for each in products(subject, seed)[1]]
            assert results or subject.kernel.name in JUMPS, subject.kernel.name
            wrong = [each for each in results if not each.is_held]
            assert wrong == [], subject.kernel.name
