"""One large call: more workgroups than one dimension of a dispatch can have.

The runtime then folds workgroups into a second dimension, and shaders compute their
number from both.  The oracle computes some elements, those at the ends among them.
"""

from __future__ import annotations

import time
from bisect import bisect
from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from kerngen.ir.memory import Leaf
from kerngen.ir.nodes import Statement
from kerngen.ir.store import StoreAt
from kerngen.plan.size import evaluate
from kerngen.plan.tree import dispatches_in
from kerngen.runtime.calls.ranges import shape_of
from kerngen.verify.calls.canned_calls import call_at
from kerngen.verify.calls.sizes import Fitting, Sizes
from kerngen.verify.fault import Fault, WrongError, compare, value_fault
from kerngen.verify.guarded import BEFORE, BEHIND, PATTERNS
from kerngen.verify.meaning.evaluate import Computed
from kerngen.verify.meaning.number import Array, BoundedArray
from kerngen.verify.meaning.programs import CallState
from kerngen.verify.trial import Given, Trial, written

MOST_GROUPS: Final = 65535
"""WebGPU's limit on the workgroups in one dimension of a dispatch."""
MOST_ELEMENTS: Final = 1 << 25
"""Elements of all tensors of a call together: more takes too long."""
_PART: Final = 16
"""The large call is this many times longer than the one that predicts its time."""
_WHOLE: Final = 256
"""The shorter length is a multiple of this: schedules for multiples ask for its divisors."""
_POINTS: Final = 400
"""Random elements that are checked."""
_MOST_TERMS: Final = 1 << 13
"""Terms of all reductions that one checked element may take."""


def large_sizes(trial: Trial) -> Sizes | None:
    """Return the smallest sizes that need two dimensions and can be checked, or None."""
    fitting = trial.fitting
    kernel = fitting.subject.kernel
    if not all(map(_is_whole, kernel.body)):
        return None
    if any(s.along for s in kernel.body):  # one element takes all those before it
        return None
    # The guard zones are parts of the same buffer.
    most = trial.guarded.ctx.max_tensor_bytes - BEFORE - BEHIND
    found = [s for s in _past_the_fold(fitting) if _fits(fitting, s, most)]
    return min(found, key=lambda s: _elements(fitting, s), default=None)


def _is_whole(statement: Statement) -> bool:
    """Whether a statement writes all of its target, which has numbers as elements."""
    is_part = statement.is_partial or isinstance(statement.value, StoreAt)
    return isinstance(statement.target.memory, Leaf) and not is_part


def _past_the_fold(fitting: Fitting) -> Iterator[Sizes]:
    """Yield sizes with one axis just long enough for 65,536 workgroups, the rest short."""
    short = fitting.near(tuple((name, 1) for name in fitting.names))
    if short is None:
        return
    for dim in fitting.kernel.dims:
        step = max(dict(short)[dim], 1)

        def at(count: int, dim: str = dim, step: int = step) -> Sizes:
            assert short is not None
            return tuple((n, step * count if n == dim else v) for n, v in short)

        counts = range(1, MOST_ELEMENTS // step)
        first = bisect(counts, MOST_GROUPS, key=lambda c: _groups(fitting, at(c)))
        if first < len(counts):
            lengths = fitting.lengths(at(counts[first]))
            if lengths is not None and fitting.way.takes(lengths):
                yield at(counts[first])


def _groups(fitting: Fitting, sizes: Sizes) -> int:
    lengths = fitting.lengths(sizes)
    if lengths is None:
        return 0
    dispatches = dispatches_in(fitting.way.variant.body)
    return max(evaluate(each.groups, lengths) for each in dispatches)


def _elements(fitting: Fitting, sizes: Sizes) -> int:
    lengths = fitting.lengths(sizes)
    assert lengths is not None
    return sum(prod(shape_of(spec.axes, lengths)) for spec in fitting.kernel.tensors)


def _fits(fitting: Fitting, sizes: Sizes, most: int) -> bool:
    """Whether the call's tensors, and the sums of an element, are not too large."""
    lengths = fitting.lengths(sizes)
    assert lengths is not None
    kernel = fitting.kernel
    tensors = [(t.axes, t.element.DTYPE.itemsize) for t in kernel.tensors]
    tensors += [(t.axes, t.element.DTYPE.itemsize) for t in kernel.temporaries]
    nbytes = (prod(shape_of(axes, lengths)) * size for axes, size in tensors)
    terms = 1
    for statement, domain in fitting.domains:
        inner = shape_of(domain[len(statement.indices) :], lengths)
        terms *= max(prod(inner), 1)
    return (
        _elements(fitting, sizes) <= MOST_ELEMENTS
        and max(nbytes) <= most
        and terms <= _MOST_TERMS
    )


def expected_seconds(trial: Trial, sizes: Sizes) -> float:
    """Return the expected time of a large call, estimated from a shorter one.

    While a large call waits for the device it can't be interrupted. If the shorter call
    fails, the large one is made all the same.
    """
    longest = max(length for _, length in sizes)
    short = longest // _PART // _WHOLE * _WHOLE
    part = tuple((n, short if v == longest else v) for n, v in sizes)
    lengths = trial.fitting.lengths(part)
    if not short or lengths is None or not trial.fitting.way.takes(lengths):
        return 0.0
    given = call_at(trial.fitting, part)
    begun = time.monotonic()
    try:
        trial.run(given, PATTERNS[0])
    except WrongError:
        return 0.0
    return (time.monotonic() - begun) * longest / short


def check_large(trial: Trial, given: Given) -> None:
    """Run a large call, and check some of its elements."""
    lengths = trial.fitting.lengths(given.sizes)
    assert lengths is not None
    results = trial.run(given, PATTERNS[0])
    # Every tensor that is written is computed where it is read: one element of the result
    # takes the elements that it depends on, and no others.
    call = CallState(trial.subject, lengths)
    with np.errstate(all="ignore"):
        call.bind(given.arrays, given.scalars)
        for statement in trial.subject.kernel.body:
            leaf = statement.target.memory
            call.contents[statement.target.name] = Computed(
                call.snapshot,
                statement.indices,
                statement.value,
                isinstance(leaf, Leaf) and leaf.is_half,
            )
        for n, tensor in enumerate(written(trial.subject)):
            contents = call.contents[tensor.name]
            assert isinstance(contents, Computed)
            places = chosen_places(contents.shape[: tensor.rank])
            want = contents.at(places)
            got = results[n][tuple(places)]
            try:
                whole = _spread(want, got)
                compare(tensor.name, tensor.memory, [whole], got, trial.tally, n)
            except WrongError as error:
                raise WrongError(_at(error.fault, tensor.name, places, got)) from None
    trial.tally.cases += 1


def _spread(want: BoundedArray, got: Array) -> BoundedArray:
    return want.map(lambda part: np.broadcast_to(part, got.shape))


def _at(fault: Fault, name: str, places: list[Array], got: Array) -> Fault:
    """Return a fault with the place in the whole tensor, not among the checked elements."""
    place = fault.place
    if places:  # a scalar is checked whole
        first, *inner = place
        place = (*(int(part[first]) for part in places), *inner)
    want = fault.expected, fault.bound
    return value_fault(name, "", place, got[fault.place], want, fault.result)


def chosen_places(shape: tuple[int, ...]) -> list[Array]:
    """Return the positions of some elements: the corners, and random ones."""
    count = prod(shape)
    if not shape:
        return []
    drawn = np.random.default_rng(1).integers(0, max(count, 1), _POINTS)
    ends = [n for n in (0, 1, count - 2, count - 1) if 0 <= n < count]
    flat = np.array([*ends, *(drawn if count else [])], np.int64)
    return [np.asarray(part) for part in np.unravel_index(flat, shape)]
