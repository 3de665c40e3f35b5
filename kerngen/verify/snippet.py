"""The Python that repeats a counterexample: `repeat` below is what it calls."""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from kerngen.ir.memory import Leaf, MemoryType
from kerngen.ir.nodes import Role
from kerngen.verify.campaign import REFERENCE, Counterexample, Result
from kerngen.verify.meaning import Subject
from kerngen.verify.plain import PERIOD
from kerngen.verify.trial import written
from kerngen.verify.values import Array, cloned

_MOST: Final = 4096
"""Numbers that are written one by one."""
_OWN: Final = frozenset(
    "abs again bound bytes expected float got kernel np print results run".split()
)
"""What the program itself calls something."""


def snippet(result: Result, source: str) -> str:
    """Return a program that repeats a counterexample; `source` is the kernel's file."""
    found, subject = result.counterexample, result.subject
    assert found is not None
    return "\n".join(_lines(result, found, subject, source))


def _lines(
    result: Result, found: Counterexample, subject: Subject, source: str
) -> Iterator[str]:
    given = found.given
    tensors = [t for t in subject.kernel.tensors if t.role is not Role.OUTPUT]
    yield "import numpy as np"
    yield ""
    yield "from kerngen.verify.repeat import kernel"
    yield ""
    names: list[str] = []
    for tensor, array in zip(tensors, given.arrays, strict=True):
        name = _variable(tensor.name, names)
        names.append(name)
        yield f"{name} = {_array(array, tensor.memory)}"
    for parameter, value in zip(subject.kernel.parameters, given.scalars, strict=True):
        name = _variable(parameter.name, names)
        names.append(name)
        packed = f"bytes.fromhex({value.pack().hex()!r})" if _is_struct(value) else ""
        yield f"{name} = {packed or _number(value)}"
    way = [repr(source), repr(result.kernel), repr(result.schedule)]
    if given.arrangement != "apart":
        way.append(f"arrangement={given.arrangement!r}")
    if given.overlapping is not None:
        way.append(f"overlapping={given.overlapping}")
    yield f"with kernel({', '.join(way)}) as run:"
    yield from _calls(found, names)
    yield from _verdict(result, found)


def _variable(name: str, taken: Sequence[str]) -> str:
    """Return what an argument is called in the program."""
    while keyword.iskeyword(name) or name in _OWN or name in taken:
        name += "_"
    return name


def _calls(found: Counterexample, names: list[str]) -> Iterator[str]:
    turn = found.given.turn
    amid = [f"pattern={turn}"] if turn else []
    yield f"    results = run({', '.join([*names, *amid])})"
    if found.fault.kind == "bits":
        yield f"    again = run({', '.join([*names, f'pattern={turn - 1}'])})"


def _verdict(result: Result, found: Counterexample) -> Iterator[str]:
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
        yield "assert abs(float(got) - expected) <= bound"
    else:
        yield f"# {fault.text}"


def _is_struct(value: Any) -> bool:
    return hasattr(value, "pack")


def _number(value: Any) -> str:
    text = repr(value)
    for word in ("nan", "inf"):
        text = text.replace(word, f"np.{word}")
    return text


def _array(array: Array, memory: MemoryType) -> str:
    if not isinstance(memory, Leaf):
        array = cloned(memory, array)
        return (
            f"np.frombuffer(bytes.fromhex({array.tobytes().hex()!r}), np.uint8), "
            f"{array.shape}"
        )
    dtype = f"np.{array.dtype.name}"
    if not array.any() and not np.signbit(array).any():
        return f"np.zeros({array.shape}, {dtype})"
    if array.size > _MOST and _repeats(array):
        numbers = _array(array.reshape(-1)[:PERIOD], memory)
        return f"np.resize({numbers}, {array.shape})"
    if array.size > _MOST:
        return (
            f"np.frombuffer(bytes.fromhex({array.tobytes().hex()!r}), {dtype})"
            f".reshape({array.shape})"
        )
    numbers = ", ".join(_number(_shortest(each)) for each in array.reshape(-1))
    made = f"np.array([{numbers}], {dtype})"
    return made if array.ndim == 1 else f"{made}.reshape({array.shape})"


def _repeats(array: Array) -> bool:
    """Whether an array repeats its first numbers, as those of large calls do."""
    flat = array.reshape(-1)
    return bool(np.array_equal(np.resize(flat[:PERIOD], flat.shape), flat))


def _shortest(value: Any) -> float | int:
    """Return a number that is written in the fewest digits that give it back."""
    return int(value) if value.dtype.kind in "iu" else float(str(value))
