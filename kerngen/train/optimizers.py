"""The optimizers of a trainer, and the settings of their steps."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast, final

import numpy as np

from kerngen.runtime import (
    DtypeError,
    Scalar,
    ShapeError,
    UniformRangeError,
    Vector,
    f32,
    u32,
)
from kerngen.runtime.calls.capture import ChangeableFloat, ChangeableInt
from kerngen.runtime.calls.scalars import check_number
from kerngen.runtime.calls.unknown import unknown_name
from kerngen_kernels import optim

Setting: TypeAlias = float | Mapping[str, float]
"""A number for all parameters, or one for each by name."""

Name: TypeAlias = Literal["adamw", "adam", "sgd", "lion"]
"""The name of an optimizer."""

_LEAST: Final = float(np.finfo(np.float32).tiny)
"""The least normal f32: adapters may flush smaller numbers to 0."""
_RANGES: Final = {
    "beta1": (0.0, 1.0),
    "beta2": (0.0, 1.0),
    "momentum": (0.0, 1.0),
    "eps": (_LEAST, math.inf),
}
"""The ranges of settings: from the first number on, below the second; others from 0 on."""


@final
@dataclass(frozen=True, slots=True)
class Optimizer:
    """An optimizer: its kernel in `dsl/optim.kern`, and the moments that it keeps."""

    name: Name
    moments: tuple[str, ...]
    """The names of its moments, in the order of the kernel's arguments."""
    counts: bool = False
    """Whether its kernel takes the number of the step, for the correction of moments."""

    @property
    def step(self) -> str:
        """The name of the trainer's method that takes a step."""
        return f"{self.name}_step"

    def update(
        self,
        tensors: Sequence[Vector[f32]],
        failed: Scalar[u32],
        settings: Settings,
        step: int,
    ) -> None:
        """Record a step: `tensors` are parameters, gradients and moments.

        The device skips it where `failed` is not 0.
        """
        number = {"step": step} if self.counts else {}
        kernel: Any = getattr(optim, f"{self.name}_unless")
        kernel(*tensors, failed, **dict(settings), **number)


OPTIMIZERS: Final[Mapping[str, Optimizer]] = {
    optimizer.name: optimizer
    for optimizer in (
        Optimizer("adamw", ("m", "v"), counts=True),
        Optimizer("adam", ("m", "v"), counts=True),
        Optimizer("sgd", ("v",)),
        Optimizer("lion", ("m",)),
    )
}

Settings: TypeAlias = tuple[tuple[str, float], ...]
"""The arguments of an optimizer's kernel beside tensors: a number for each name."""


def optimizer_of(name: str) -> Optimizer:
    """Return the optimizer with this name.

    Raises:
        UnknownNameError: If there is none.
    """
    if name not in OPTIMIZERS:
        raise unknown_name("Trainer", "optimizer", name, OPTIMIZERS)
    return OPTIMIZERS[name]


def check_range(where: str, name: str, value: object) -> None:
    """Refuse a setting that is not an f32 number in its range."""
    number = check_number(where, name, value)
    least, below = _RANGES.get(name, (0.0, math.inf))
    if not least <= number < below:
        end = f"below {below:g}" if below < math.inf else "finite"
        raise UniformRangeError(
            f"{where}: {name} is {value}; expected at least {least:g}, and {end}."
        )


def by_settings(
    where: str, names: Sequence[str], given: Mapping[str, Setting]
) -> list[tuple[Settings, list[str]]]:
    """Group parameters by their settings.

    With `lr={"w": 0.1, "b": 0.2, "u": 0.1}` there are two groups: `w` and `u`, and `b`.

    Raises:
        UniformRangeError: If a setting is out of its range, or of f32's.
        DtypeError: If it is no number.
        UnknownNameError: If settings by name lack one of the parameters.
    """
    each = {what: of for what, of in given.items() if isinstance(of, Mapping)}
    shared = {what: of for what, of in given.items() if not isinstance(of, Mapping)}
    for what, value in shared.items():
        check_range(where, what, value)
    if not each:
        return [(tuple(shared.items()), list(names))]
    groups: dict[tuple[object, ...], tuple[Settings, list[str]]] = {}
    for name in names:
        own = {what: _of(where, what, of, name) for what, of in each.items()}
        settings = tuple({**shared, **own}.items())
        # Two scalars of a capture may be equal now, and differ in a replay.
        key = settings, tuple(changeable(settings))
        groups.setdefault(key, (settings, []))[1].append(name)
    return list(groups.values())


def _of(where: str, what: str, setting: Mapping[str, float], name: str) -> float:
    if name not in setting:
        raise unknown_name(f"{where}: {what}", "parameter", name, setting)
    check_number(where, f"{what}['{name}']", setting[name])
    check_range(where, what, setting[name])
    return setting[name]


def changeable(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the settings that a capture's `scalar` declared: (scalar, setting)."""
    for what, value in settings:
        if isinstance(value, ChangeableInt | ChangeableFloat):
            yield value.name, what


def check_names(
    where: str, names: Sequence[str] | None, known: Sequence[str]
) -> list[str]:
    """Return the names of the parameters to update: given ones, or all.

    Raises:
        DtypeError: If it is no list of names.
        ShapeError: If it is an empty one.
    """
    if names is None:
        return list(known)
    if not _is_list(names):
        raise DtypeError(f"{where}: parameters is {names!r}; expected a list of names.")
    if not names:
        raise ShapeError(f"{where}: parameters is an empty list; name one at least.")
    return list(names)


def _is_list(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return all(isinstance(each, str) for each in cast("Sequence[object]", value))
