"""The Python program that repeats a counterexample, by functions of `repeat`."""

from __future__ import annotations

import keyword
from base64 import b85encode
from collections.abc import Iterator, Sequence
from typing import Any, Final
from zlib import compress

import numpy as np

from kerngen.ir.memory import Leaf, MemoryType
from kerngen.ir.nodes import Parameter, Role, Tensor
from kerngen.runtime.struct import UniformStruct
from kerngen.verify.calls.canned_calls import PERIOD
from kerngen.verify.meaning.programs import Subject
from kerngen.verify.meaning.values import Array, cloned
from kerngen.verify.result import DIFFERENCES, REFERENCE, Counterexample, WayResult
from kerngen.verify.trial import written

_MOST: Final = 4096
"""Numbers of an array that are written one by one; larger arrays are packed bytes."""
_OWN: Final = frozenset(
    "abs again b85decode bound bytes decompress expected float got kernel np print "
    "results run".split()
)
"""Names that the program itself uses, which no argument's variable may have."""


def snippet(result: WayResult, sources: str) -> str:
    """Return a program that repeats a counterexample."""
    found, subject = result.counterexample, result.subject
    assert found is not None
    if result.strategy == DIFFERENCES:
        return "\n".join(_differences(result, found, sources))
    return "\n".join(_lines(result, found, subject, sources))


def _lines(
    result: WayResult, found: Counterexample, subject: Subject, sources: str
) -> Iterator[str]:
    """Yield the lines of the program: imports, arguments, the call, and its check."""
    given = found.given
    tensors = [t for t in subject.kernel.tensors if t.role is not Role.OUTPUT]
    pairs = zip(given.arrays, tensors, strict=True)
    made = [array_text(array, tensor.memory) for array, tensor in pairs]
    if any("b85decode" in each for each in made):
        yield from ("from base64 import b85decode", "from zlib import decompress", "")
    yield from (
        "import numpy as np",
        "",
        "from kerngen.verify.repeat import kernel",
        "",
    )
    made += map(_scalar, given.scalars)
    names: list[str] = []
    arguments: list[Tensor | Parameter] = [*tensors, *subject.kernel.parameters]
    for argument, text in zip(arguments, made, strict=True):
        names.append(_variable(argument.name, names))
        yield f"{names[-1]} = {text}"
    way = [repr(result.file), repr(result.kernel), repr(result.schedule)]
    if sources:
        way.append(f"sources={sources!r}")
    if given.arrangement != "apart":
        way.append(f"arrangement={given.arrangement!r}")
    if given.overlapping is not None:
        way.append(f"overlapping={given.overlapping}")
    yield f"with kernel({', '.join(way)}) as run:"
    yield from _calls(found, names)
    yield from _verdict(result, found)


def _differences(
    result: WayResult, found: Counterexample, sources: str
) -> Iterator[str]:
    way = [repr(result.file), repr(result.kernel), f"seed={found.given.turn}"]
    if sources:
        way.append(f"sources={sources!r}")
    yield from ("from kerngen.verify.repeat import differences", "")
    yield f"for each in differences({', '.join(way)}):"
    yield "    print(each)"
    yield "    assert each.is_held"


def _variable(name: str, taken: Sequence[str]) -> str:
    """Return the variable of an argument in the program."""
    while keyword.iskeyword(name) or name in _OWN or name in taken:
        name += "_"
    return name


def _calls(found: Counterexample, names: list[str]) -> Iterator[str]:
    turn = found.given.turn
    amid = [f"pattern={turn}"] if turn else []
    yield f"    results = run({', '.join([*names, *amid])})"
    if found.fault.kind in {"bits", "outside"} and turn % 2 == 0:
        # A stray store may happen to write what one of the patterns has there.
        yield f"    again = run({', '.join([*names, f'pattern={turn - 1}'])})"


def _verdict(result: WayResult, found: Counterexample) -> Iterator[str]:
    fault = found.fault
    path = "".join(f"[{name!r}]" for name in fault.path.split(".")[1:])
    place = f"[{', '.join(map(str, fault.place))}]" if fault.place else ""
    part = f"[{fault.result}]{path}{place}"
    if fault.kind == "bits":
        yield f"assert results{part}.tobytes() == again{part}.tobytes()"
    elif fault.kind == "value":
        name = [tensor.name for tensor in written(result.subject)][fault.result]
        by = "NumPy" if result.strategy == REFERENCE else "the device"
        yield f"got = results{part}"
        yield f"expected, bound = {_number(fault.expected)}, {_number(fault.bound)}"
        yield (
            f'print(f"{name}{fault.path}{place}: {by} gives {{got}}, '
            f'not {{expected}} within {{bound}}")'
        )
        if np.isinf(fault.expected):
            yield "assert got == expected"
        else:
            yield "assert abs(float(got) - expected) <= bound"
    else:
        yield f"# {fault.text}"


def _scalar(value: Any) -> str:
    if isinstance(value, UniformStruct):
        return f"bytes.fromhex({value.pack().hex()!r})"
    return _number(value)


def _number(value: Any) -> str:
    text = repr(value)
    for word in ("nan", "inf"):
        text = text.replace(word, f"np.{word}")
    return text


def array_text(array: Array, memory: MemoryType) -> str:
    """Return a Python expression for an array; structs are given as bytes."""
    if array.size > _MOST and _repeats(array):
        flat = array.reshape(-1)[:PERIOD]
        if isinstance(memory, Leaf):
            return f"np.resize({array_text(flat, memory)}, {array.shape})"
        size = array.size * array.itemsize
        return f"np.resize({_bytes(cloned(memory, flat))}, {size}), {array.shape}"
    if not isinstance(memory, Leaf):
        return f"{_bytes(cloned(memory, array))}, {array.shape}"
    dtype = f"np.{array.dtype.name}"
    if not array.any() and not np.signbit(array).any():
        return f"np.zeros({array.shape}, {dtype})"
    if array.size > _MOST:
        return f"{_bytes(array)}.view({dtype}).reshape({array.shape})"
    numbers = ", ".join(_number(_shortest(each)) for each in array.reshape(-1))
    made = f"np.array([{numbers}], {dtype})"
    return made if array.ndim == 1 else f"{made}.reshape({array.shape})"


def _bytes(array: Array) -> str:
    """Return an expression for the bytes of an array: as they are, or packed if many."""
    data = array.tobytes()
    made = f"bytes.fromhex({data.hex()!r})"
    if len(data) > _MOST:
        packed = b85encode(compress(data)).decode()
        made = f"decompress(b85decode({packed!r}))"
    return f"np.frombuffer({made}, np.uint8)"


def _repeats(array: Array) -> bool:
    """Whether an array repeats its first elements, as those of large calls do."""
    flat = array.reshape(-1)
    return np.resize(flat[:PERIOD], flat.shape).tobytes() == flat.tobytes()


def _shortest(value: Any) -> float | int:
    """Return a number that is written in the fewest digits that give it back."""
    return int(value) if value.dtype.kind in "iu" else float(str(value))
