"""The arguments of a call that a program repeats."""

from __future__ import annotations

from typing import Any

import numpy as np

from kerngen.verify import repeat, snippet
from kerngen.verify.calls.canned_calls import call_at
from kerngen.verify.calls.draw import inputs_of
from kerngen.verify.calls.sizes import Fitting
from kerngen.verify.campaign import reference_way
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.snippet import array_text
from tests.compile import built


def test_a_struct_of_a_repeated_call_is_its_bytes_or_itself() -> None:
    text = """
        struct Line { slope: f32, offset: f32 }
        kernel line(x: f32[n], l: Line, more: f32) -> y: f32[n] {
            y[i] = l.slope * x[i] + l.offset + more;
        }
    """
    with built(text) as (found,):
        element: Any = found.scalars[0].element
        line = element(2.0, 3.0)
        x = np.ones(4, np.float32)
        assert eval(vars(snippet)["_scalar"](line)) == line.pack()
        for given in (line, line.pack()):
            scalars = vars(repeat)["_given"](found, (x, given, 0.5), "apart").scalars
            assert scalars == (line, 0.5)


def test_arrays_of_a_repeated_call_are_those_that_are_written(
    known: dict[str, Subject],
) -> None:
    """Structs, of which the program has bytes, and the lengths that follow from arrays."""
    fitting = Fitting(known["pairs"], reference_way(known["pairs"]))
    given = call_at(fitting, (("n", 3),))
    tensors = inputs_of(fitting.subject.kernel)
    pairs = zip(given.arrays, tensors, strict=True)
    written = [eval(array_text(x, t.memory), {"np": np}) for x, t in pairs]
    read = vars(repeat)["_given"]
    again = read(fitting.kernel, tuple(written), "given")
    assert (again.sizes, again.arrangement) == (given.sizes, "given")
    for one, other in zip(again.arrays, given.arrays, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    # A length may be decided by a scalar.
    lagged = read(known["lagged"].runtime, (np.ones(5, np.float32), 3), "apart")
    assert dict(lagged.sizes) == {"n": 5, "lag": 3}
    assert lagged.scalars == (3,)
