"""States of a trainer as named arrays, checked before they are loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kerngen.runtime import DtypeError, ShapeError, f32
from kerngen.runtime.values.arrays import to_memory
from kerngen.runtime.values.foreign import as_array
from kerngen.runtime.values.kinds import kind_of
from kerngen.train.arena import Array

PARAMETERS: Final = "parameters"
"""The prefix of the parameters' names in a state; moments have those of their optimizer."""

STEP: Final = "step"

_MOST_STEPS: Final = 1 << 32
"""Kernels count steps in a u32."""

Arrays = Mapping[str, NDArray[Any]]


@final
@dataclass(frozen=True, slots=True)
class Snapshot:
    """A trainer's state: arrays by group and parameter, and the number of steps."""

    groups: Mapping[str, Mapping[str, Array]]
    step: int

    def flat(self) -> dict[str, NDArray[Any]]:
        """Return the state as one dict: 'step', 'parameters.x', 'm.x' and so on."""
        state: dict[str, NDArray[Any]] = {STEP: np.asarray(self.step, np.int64)}
        for group, arrays in self.groups.items():
            state |= {f"{group}.{name}": array for name, array in arrays.items()}
        return state


def snapshot_of(
    state: Arrays, groups: Sequence[str], shapes: Mapping[str, tuple[int, ...]]
) -> Snapshot:
    """Return a flat state as a snapshot, after checking its names and shapes.

    Raises:
        ShapeError: If an array is missing, is too many, or has another shape.
        DtypeError: If an array is not of f32, or the step is no count.
    """
    wanted = {f"{group}.{name}": shapes[name] for group in groups for name in shapes}
    _check_mapping("load_state", state)
    _check_names(state, {STEP, *wanted})
    wrong = [
        f"'{name}' has shape {np.shape(state[name])}, expected {shape}"
        for name, shape in wanted.items()
        if np.shape(state[name]) != shape
    ]
    if wrong:
        raise ShapeError(f"The state is of other parameters: {_some(wrong)}.")
    return Snapshot(
        {
            group: {name: _f32(state, f"{group}.{name}") for name in shapes}
            for group in groups
        },
        _step(state[STEP]),
    )


def _check_names(state: Arrays, wanted: set[str]) -> None:
    missing = [f"'{name}' is missing" for name in sorted(wanted - set(state))]
    extra = [f"'{name}' is unknown" for name in sorted(set(state) - wanted)]
    if missing or extra:
        raise ShapeError(
            f"The state is of other parameters: {_some([*missing, *extra])}."
        )


def _some(faults: list[str]) -> str:
    """Join faults, the first few of many."""
    shown = "; ".join(faults[:5])
    return f"{shown}; and {len(faults) - 5} more" if len(faults) > 5 else shown


def _f32(state: Arrays, name: str) -> Array:
    array = as_array(state[name])
    if array.dtype != np.float32:
        raise DtypeError(
            f"'{name}' of the state has dtype {array.dtype}; expected float32."
        )
    return array


def _step(value: NDArray[Any]) -> int:
    array = as_array(value)
    if array.shape != () or array.dtype.kind not in "iu":
        raise DtypeError(f"The state's 'step' is {value!r}; expected a count of steps.")
    if not 0 <= int(array) < _MOST_STEPS:
        raise DtypeError(
            f"The state's 'step' is {int(array)}; expected 0 to {_MOST_STEPS - 1}."
        )
    return int(array)


def as_parameters(arrays: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return initial parameters as arrays of f32.

    Raises:
        DtypeError: If it is no mapping, a name is no text, or an array holds no real
            numbers, or some beyond f32's range.
        ShapeError: If there are none.
    """
    _check_mapping("Trainer", arrays)
    if not arrays:
        raise ShapeError("A trainer needs a parameter at least; the mapping is empty.")
    return {_name(name): _parameter(name, value) for name, value in arrays.items()}


def _check_mapping(where: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise DtypeError(
            f"{where}: expected a mapping from names to arrays, got "
            f"{kind_of(value)}."
        )


def _name(name: object) -> str:
    if not isinstance(name, str):
        raise DtypeError(f"Trainer: the parameter name {name!r} is not text.")
    try:
        encoded = name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DtypeError(
            f"Trainer: the parameter name {name!r} can't be written to a file: {error}."
        ) from error
    if not encoded:
        raise DtypeError("Trainer: a parameter's name is empty.")
    return name


def _parameter(name: str, value: ArrayLike) -> Array:
    try:
        array, _ = to_memory(value, f32)
    except (DtypeError, ShapeError) as error:
        raise type(error)(f"Trainer: parameter '{name}': {error}") from error
    return array
