"""What kernels of one construct each mean to the oracle, against NumPy by hand."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from kerngen.runtime.calls.ranges import derive
from kerngen.verify.meaning import programs as module
from kerngen.verify.meaning.evaluate import Computed
from kerngen.verify.meaning.number import BoundedArray
from kerngen.verify.meaning.places import chains
from kerngen.verify.meaning.programs import CallState, Subject, meaning

F, S, W = np.float32, np.int32, np.uint32
SPREAD: Any = vars(module)["_spread"]

Run: TypeAlias = Callable[..., list[list[BoundedArray]]]


@pytest.fixture
def run(known: dict[str, Subject]) -> Run:
    """What calls a kernel with lengths, arrays and scalars; None of what is exact."""

    def call(name: str, sizes: dict[str, int], *given: Any) -> list[list[BoundedArray]]:
        subject = known[name]
        lengths = dict(sizes)
        derive(subject.runtime, lengths)
        count = len(subject.runtime.inputs)
        return meaning(subject, lengths, given[:count], given[count:])

    return call


def exactly(found: BoundedArray, expected: Any) -> None:
    np.testing.assert_array_equal(found.error, 0)
    np.testing.assert_array_equal(found.value, expected)


def test_vectors_are_built_and_read(run: Run) -> None:
    x, v = np.array([1, 2], F), np.arange(6, dtype=F).reshape(2, 3)
    (a,), (b,), (c,) = run("vectors", {"n": 2}, x, v, 0.0)
    exactly(a, x[:, None] - v)
    exactly(b, np.c_[x, v])
    np.testing.assert_array_equal(c.value, v[:, [2, 0]])
    *_, (c,) = run("vectors", {"n": 2}, x, v, 1.0)
    np.testing.assert_array_equal(c.value, v[:, [1, 1]])


def test_a_number_fills_a_vector(run: Run) -> None:
    x = np.array([1, 2], F)
    (a,), (b,) = run("splats", {"n": 2}, x)
    exactly(a, [[1, 1, 1], [2, 2, 2]])
    np.testing.assert_array_equal(b.value, 4 * x)


def test_vectors_are_summed_and_filled_along_axes(run: Run) -> None:
    """Where terms do not depend on the axis of a sum, and results have two axes."""
    x = np.array([[1, 2], [3, 4], [5, 6]], F)
    (y,), (z,) = run("scalings", {"m": 3, "n": 2}, x)
    exactly(y, [[4, 4], [12, 4], [20, 4]])
    exactly(z, np.stack([x, x, x], -1))


def test_columns_and_products_of_matrices(run: Run) -> None:
    m = np.arange(12, dtype=F).reshape(2, 2, 3)
    v, ids = np.array([[1, 2], [3, -1]], F), np.array([1, 7], W)
    (a,), (b,), (c,) = run("matrices", {"n": 2}, m, v, ids)
    expected = np.einsum("ncr,nc->nr", m, v)
    exactly(a, expected)
    exactly(b, m[:, 1])  # one beyond the last column is the last
    exactly(c, (m[:, 1] * expected).sum(-1))


def test_extremes_of_integers(run: Run) -> None:
    x, u = np.array([[3, -2], [5, 7]], S), np.array([[3, 2**32 - 1], [5, 7]], W)
    found = run("extremes", {"m": 2, "n": 2}, x, u)
    expected = [[-2, 5], [3, 7], [3, 5], [2**32 - 1, 7]]
    for (each,), want in zip(found, expected, strict=True):
        exactly(each, want)
    nothing = run(
        "extremes", {"m": 1, "n": 0}, np.zeros((1, 0), S), np.zeros((1, 0), W)
    )
    ends = [2**31 - 1, -(2**31), 2**32 - 1, 0]
    for (each,), end in zip(nothing, ends, strict=True):
        exactly(each, end)


def test_infinities_are_known_up_to_arithmetic(run: Run) -> None:
    x = np.array([[1, 2, 3], [7, 8, 9]], F)
    (top,), (lost,) = run("below", {"m": 2, "n": 3}, x, 2.5)
    exactly(top, [2, -np.inf])
    exactly(lost, [0, -6])
    (top,), (lost,) = run("below", {"m": 2, "n": 0}, np.zeros((2, 0), F), 2.5)
    exactly(top, [-np.inf, -np.inf])
    assert lost.error.tolist() == [np.inf, np.inf]


def test_sums_of_integers_wrap(run: Run) -> None:
    x, u = np.array([[2**31 - 1, 2]], S), np.array([[2**32 - 1, 2]], W)
    (a,), (b,), (c,) = run("totals", {"m": 1, "n": 2}, x, u)
    exactly(a, -(2**31) + 1)
    exactly(b, -2)
    exactly(c, 1)


def test_what_a_condition_leaves_out_does_not_matter(run: Run) -> None:
    ids = np.array([1, 0, 2, -5, 1], S)
    x = np.array([[1, np.nan, 2, np.inf, 3], [5, -np.inf, 7, np.nan, 9]], F)
    v = np.arange(10, dtype=F).reshape(5, 2)
    v[3] = np.nan
    found = run("conditional", {"m": 2, "n": 5}, x, v, ids)
    (a,), (b,), (c,), (d,), (e,) = found
    exactly(a, [6, 21])
    exactly(b, [1, 5])
    exactly(c[:, 1:], [[3, 2], [45, 7]])
    assert not np.isfinite(c.error[:, 0]).any(), "what is chosen does"
    exactly(d, [v[1], v[0], v[2]])
    exactly(e, [-5, -5, -5, 1, 2**31 - 1])
    (a,), _, (c,), *_ = run("conditional", {"m": 2, "n": 5}, x, v, ids * 0 - 1)
    exactly(a, [0, 0])
    exactly(c, np.ones((2, 3)))


def test_places_of_extremes(run: Run) -> None:
    """The first of equal terms; -1 where no term counts; of terms that are all one, 0."""
    x, k = np.array([[3, 7, 7, 1], [5, 5, 2, 4]], F), np.array([1, 2, 1, 2], S)
    (a,), (b,), (c,), (d,) = run("best", {"m": 2, "n": 4}, x, k)
    exactly(a, [1, 0])
    exactly(b, [3, 3])
    exactly(c, [0, 0])
    exactly(d, [2, 2])
    (a,), (b,), (c,), (d,) = run("best", {"m": 2, "n": 1}, x[:, :1], k[:1])
    exactly(a, [0, 0])
    exactly(b, [0, -1])
    exactly(d, [-1, -1])
    doubtful = np.array([[0, 1e-40, 0, -1], [5, 1e-40, 2, 4]], F)
    (a,), *_ = run("best", {"m": 2, "n": 4}, doubtful, k)
    assert a.unsure.tolist() == [True, False]


def test_running_reductions(run: Run) -> None:
    x, k = np.array([[3, 7, -2], [5, 4, 1]], F), np.array([-5, 2, 1], S)
    (a,), (b,), (c,) = run("running", {"m": 2, "n": 3}, x, k)
    exactly(a, x.cumsum(1))
    exactly(b, [2, 2, 1])
    exactly(c, [0, 0, 1])


def test_running_reductions_reach_beyond_the_ends(run: Run) -> None:
    """Of no terms, and of all of them."""
    x = np.array([3, 7, -2, 5], F)
    found = run("shifted", {"n": 4}, x)
    expected = [0, 0, 3, 10], [8, 13, 13, 13], [3, 5, 0, 0], [13, 13, 13, 10]
    for (each,), want in zip(found, expected, strict=True):
        exactly(each, want)


def test_a_recurrence_may_go_back_along_the_first_axis(run: Run) -> None:
    x = np.arange(24, dtype=F).reshape(4, 3, 2)
    ((y,),) = run("rising", {"n": 4, "m": 3}, x, 0.5)
    expected = x.copy()
    for i in (2, 1, 0):
        expected[i] += expected[i + 1] / 2
    np.testing.assert_array_equal(y.value, expected)
    assert (y.error < 1e-4).all()


def test_chains_are_those_of_nested_reductions(known: dict[str, Subject]) -> None:
    """A prefix sum is computed term by term, and costs no more than its row."""
    y, z = known["nested"].kernel.body
    assert chains(y.value) == (("k", "l"),)
    assert chains(z.value) == (("m",),)


def test_a_factor_of_one_term_is_not_taken_out(run: Run) -> None:
    """A product of the two others would overflow."""
    a, b = np.array([1e-30], F), np.array([1e30], F)
    ((y,),) = run("thrice", {"n": 1}, a, b, b)
    assert np.isfinite(y.error).all()
    assert y.value == pytest.approx(1e30)


def test_running_reductions_of_long_rows_keep_no_square(run: Run) -> None:
    """A square of 3,000 by 3,000 numbers has 72 MB."""
    x, k = np.ones((1, 3000), F), np.arange(3000, dtype=S)
    tracemalloc.start()
    (a,), (b,), _ = run("running", {"m": 1, "n": 3000}, x, k)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    exactly(a, x.cumsum(1))
    exactly(b, np.full(3000, 2999))
    assert most < 8e6


def test_functions_of_whole_vectors(run: Run) -> None:
    v, u = np.array([[1, -2, 3], [-4, 5, 6]], F), np.array([[1, 9], [3, 8]], W)
    (a,), (b,), (c,) = run("bounded", {"n": 2}, v, u, np.array([1, 0], F), 2.5)
    exactly(a, np.maximum(v, 2.5))
    np.testing.assert_array_equal(b.value, [v[0, [1, 2, 0]], v[1]])
    exactly(c, [[1, 9], [8, 3]])


def test_stores_at_positions(run: Run) -> None:
    """What lies outside is not stored; where the position is in doubt, nothing is known."""
    m, x = np.arange(8, dtype=F).reshape(4, 2), np.array([[5, 6], [7, 8]], F)
    ((after,),) = run("put", {"a": 4, "b": 2, "n": 2}, m, x, 1)
    exactly(after, np.r_[m[:1], 2 * x, m[3:]])
    ((after,),) = run("put", {"a": 4, "b": 2, "n": 2}, m, x, 3)
    exactly(after, np.r_[m[:3], 2 * x[:1]])
    ((after,),) = run("put", {"a": 4, "b": 2, "n": 2}, m, x, -1)
    exactly(after, np.r_[2 * x[1:], m[1:]])
    sizes = {"a": 4, "b": 2, "n": 2}
    (after,), (both,) = run("unclear", sizes, m[:, 0], m, x[:, 0], 0.7)
    exactly(after, [0, 2, 5, 7])
    exactly(both, [[0, 1], [2, 3], [5, 5], [7, 7]])
    for (after,) in run("unclear", sizes, m[:, 0], m, x[:, 0], 1 / 3):
        assert np.isinf(after.error).all()


def test_elements_of_a_member_are_stored_at_positions(
    run: Run, known: dict[str, Subject]
) -> None:
    p = np.zeros(3, known["placed"].runtime.inputs[0].element.DTYPE)
    p["far"] = 7
    x = np.arange(6, dtype=F).reshape(2, 3)
    ((near, far, _),) = run("placed", {"m": 3, "n": 2}, p, x, 2)
    exactly(far, [[7, 7, 7], [7, 7, 7], x[0]])
    exactly(near, np.zeros((3, 2)))
    ((_, far, _),) = run("placed", {"m": 3, "n": 2}, p, x, 1)
    exactly(far, [[7, 7, 7], *x])
    ((_, far, _),) = run("placed_alone", {"m": 3, "n": 2}, p, x[:, 1], 1)
    exactly(far, [[7, 7, 7], [7, 1, 7], [7, 4, 7]])


def test_elements_computed_where_they_are_read(known: dict[str, Subject]) -> None:
    """So are those that a large call is held to: as the whole tensor, with its rounding."""
    subject, places = known["half"], [np.array([2, 0, 1])]
    x, y = np.array([1, 2, 0.5], np.float16), np.array([0.5, 0.25, 1 / 3], F)
    lengths = {"n": 3}
    derive(subject.runtime, lengths)
    ((whole,),) = meaning(subject, lengths, [x, y], [])
    call = CallState(subject, lengths)
    call.bind([x, y], [])
    (statement,) = subject.kernel.body
    lazy = Computed(call.snapshot, statement.indices, statement.value, is_half=True)
    assert (lazy.shape, lazy.dtype) == ((3,), np.dtype(np.float64))
    found = lazy.at(places)
    for part in ("value", "error", "size"):
        got, want = getattr(found, part), getattr(whole, part)
        np.testing.assert_array_equal(got, want[places[0]])
    assert whole.error[:2].tolist() == [0, 0]
    assert whole.error[2] > 2.0**-11 * 0.8


def test_what_changes_comes_first_then_the_outputs(run: Run) -> None:
    x = np.array([10, 20], F)
    found = run("ordered", {"n": 2}, x, x, x)
    for (each,), more in zip(found, (4, 2, 3, 1), strict=True):
        exactly(each, x + more)


def test_places_are_cut_to_the_axis(run: Run) -> None:
    x, ids = np.array([5, 6, 7], F), np.array([-1, 0, 2, 3], S)
    v = np.arange(6, dtype=F).reshape(3, 2)
    (y,), (w,) = run("gathered", {"n": 3, "m": 4}, x, ids, v)
    exactly(y, x[[0, 0, 2, 2]])
    exactly(w, v[[0, 0, 2, 2]])
    empty = np.zeros(0, F), ids, np.zeros((0, 2), F)
    (y,), (w,) = run("gathered", {"n": 0, "m": 4}, *empty)
    assert np.isinf(y.error).all()
    assert (y.shape, w.shape) == ((4,), (4, 2))


def test_what_is_read_at_a_doubtful_place_is_unknown(run: Run) -> None:
    """0.7 times 3 is 2 for certain; a third times 3 may be 0 or 1."""
    x, v = np.array([5, 6, 7], F), np.arange(6, dtype=F).reshape(3, 2)
    s, w = np.array([0.7, 1 / 3], F), np.array([1, 2, 3], F)
    (y,), (z,), (c,) = run("doubted", {"n": 3, "m": 2}, x, v, s, w)
    for found, want in ((y, 7), (z, [4, 5]), (c, 3)):
        assert np.isinf(found.error[1]).all()
        exactly(found[0], want)
    (y,), (z,), (c,) = run("doubted", {"n": 3, "m": 2}, x, v, -s, w)
    for found, want in ((y, 5), (z, [0, 1]), (c, 1)):
        exactly(found[0], want)  # one before the first is the first


def test_a_column_at_a_doubtful_place_is_unknown(run: Run) -> None:
    """Each matrix has a place of its own: only the second is in doubt."""
    m, s = np.arange(18, dtype=F).reshape(3, 2, 3), np.array([0.5, 1 / 3, 0.1], F)
    ((a,),) = run("columns", {"n": 3}, m, s)
    exactly(a[[0, 2]], [m[0, 1], m[2, 0]])
    assert a.shape == (3, 3)
    assert np.isinf(a.error[1]).all()


def test_one_unknown_integer_makes_a_sum_unknown(run: Run) -> None:
    """A third times 3 may be 0 or 1."""
    (a,), (b,) = run("counted", {"n": 2}, np.array([0.7, 1.4], F))
    exactly(a, 6)
    exactly(b, [-2, -4])
    (a,), (b,) = run("counted", {"n": 2}, np.array([0.7, 1 / 3], F))
    assert a.unsure.all()
    assert b.unsure.tolist() == [False, True]


def test_halves_are_rounded_where_they_are_kept(run: Run) -> None:
    x = np.array([1.0, 0.3, 30000.0], F)
    (y,), (z,) = run("halves", {"n": 3}, x)
    assert y.error[0] == 0
    assert y.error[1] > 2.0**-11 * 0.9
    assert z.error[1] < 2.0**-20
    assert np.isfinite(y.error).tolist() == [True, True, False]
    assert np.isfinite(z.error).all()


def test_members_and_elements_are_written_alone(
    run: Run, known: dict[str, Subject]
) -> None:
    dtype = known["pairs"].runtime.inputs[1].element.DTYPE
    p = np.zeros(2, dtype)
    p["near"], p["far"], p["count"] = [[1, 2], [3, 4]], [[1, 2, 3], [4, 5, 6]], [7, 8]
    x = np.array([20, 30], F)
    changed, made = run("pairs", {"n": 2}, x, p)
    near, far = [[1, 21], [3, 31]], np.array([[1, 20, 3], [4, 30, 6]])
    for found, want in zip(changed, (near, far, [7, 8]), strict=True):
        exactly(found, want)
    for found, want in zip(made, (near, far * range(3), [8, 9]), strict=True):
        exactly(found, want)


def test_functions_see_their_arguments_and_lets(run: Run) -> None:
    x, y = np.array([2, 3], F), np.array([5, 7], F)
    ((z,),) = run("called", {"n": 2}, x, y)
    exactly(z, (x * x + y) * x * x - (y * y + x) * y * y)


def test_the_host_computes_before_the_call(run: Run) -> None:
    x = np.array([2, 3], F)
    ((y,),) = run("hosted", {"n": 2}, x, 6.0, 5)
    exactly(y, 1.5 * x + 7)


def test_a_let_keeps_what_it_was_computed_from(run: Run) -> None:
    x = np.array([2, 3, 5], F)
    (after,), (s,) = run("before", {"n": 3}, x)
    exactly(after, x[::-1])
    exactly(s, (np.arange(3) * (x[::-1] - 2 * x)).sum())


def test_conditions(run: Run) -> None:
    x, k = np.array([0, 0, 1, 1, 2], F), np.array([0, 3, 2, 3, -(2**31)], S)
    ((y,),) = run("logic", {"n": 5}, x, k)
    exactly(y, [~0, -3, -2, ~3, ~-(2**31)])


def test_an_open_condition_covers_both(run: Run) -> None:
    """A subnormal number may be flushed to 0: it is below 0, or not."""
    x = np.array([-1e-40, 2.0, -3.0], F)
    (y,), (z,) = run("chosen", {"n": 3}, x)
    assert y.error[0] == pytest.approx(1.0)
    assert z.error[0].tolist() == pytest.approx([1.0, 2.0])
    exactly(y[1:], [2, 1])
    exactly(z[1:], [[2, 2], [1, 2]])


def test_rows_of_a_slab_have_at_most_its_points(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of `y` costs the 3 terms of its sum; one of `s` has 3 points."""
    shapes: list[tuple[int, ...]] = []

    def spread(found: BoundedArray, shape: tuple[int, ...]) -> BoundedArray:
        shapes.append(shape)
        rows: BoundedArray = SPREAD(found, shape)
        return rows

    monkeypatch.setattr(module, "_SLAB", 6)
    monkeypatch.setattr(module, "_spread", spread)
    run("blocks", {"m": 5, "n": 3}, np.zeros((5, 3), F))
    assert shapes == [(2,), (2,), (1,), (2, 3), (2, 3), (1, 3)]
    shapes.clear()
    monkeypatch.setattr(module, "_SLAB", 2)  # less than a row: one at a time
    run("blocks", {"m": 2, "n": 3}, np.zeros((2, 3), F))
    assert shapes == [(1,), (1,), (1, 3), (1, 3)]


@pytest.mark.parametrize("slab", [1, 7, 1 << 19])
def test_rows_are_computed_some_at_a_time(
    run: Run, monkeypatch: pytest.MonkeyPatch, slab: int
) -> None:
    monkeypatch.setattr(module, "_SLAB", slab)
    x = np.arange(15, dtype=F).reshape(5, 3)
    (y,), (s,) = run("blocks", {"m": 5, "n": 3}, x)
    exactly(y, x @ np.arange(3))
    exactly(s, x - np.arange(5)[:, None])
    (y,), (s,) = run("blocks", {"m": 0, "n": 3}, x[:0])
    assert (y.shape, s.shape) == ((0,), (0, 3))
