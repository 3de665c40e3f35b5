"""AdamW's settings, for all parameters or by their names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Final, TypeAlias, cast, final

import numpy as np

from kerngen.runtime import DtypeError, ShapeError, UniformRangeError
from kerngen.runtime.scalars import check_number
from kerngen.runtime.unknown import unknown_name

Setting: TypeAlias = float | Mapping[str, float]
"""A number for all parameters, or one for each by name."""

_LEAST: Final = float(np.finfo(np.float32).tiny)
_RANGES: Final = {
    "lr": (0.0, math.inf),
    "beta1": (0.0, 1.0),
    "beta2": (0.0, 1.0),
    "eps": (_LEAST, math.inf),
    "weight_decay": (0.0, math.inf),
}
"""The least that a setting may be, and what it must be below."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdamW:
    """The settings of a step, with the names of torch.optim.AdamW."""

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float

    def __post_init__(self) -> None:
        """Refuse what makes no step.

        Raises:
            UniformRangeError: If a setting is out of its range, or of f32's.
            DtypeError: If it is no number.
        """
        for field in fields(self):
            check_range("adamw_step", field.name, getattr(self, field.name))


def check_range(where: str, name: str, value: object) -> None:
    """Refuse a setting that is no number of f32, or out of its range."""
    number = check_number(where, name, value)
    least, below = _RANGES.get(name, (0.0, math.inf))
    if not least <= number < below:
        end = f"below {below:g}" if below < math.inf else "finite"
        raise UniformRangeError(
            f"{where}: {name} is {value}; expected at least {least:g}, and {end}."
        )


def by_settings(
    names: Sequence[str],
    *,
    lr: Setting,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: Setting,
) -> dict[AdamW, list[str]]:
    """Group parameters by their settings.

    Raises:
        UnknownNameError: If settings by name lack one of the parameters.
    """
    if not isinstance(lr, Mapping) and not isinstance(weight_decay, Mapping):
        settings = AdamW(
            lr=lr, beta1=beta1, beta2=beta2, eps=eps, weight_decay=weight_decay
        )
        return {settings: list(names)}
    known: dict[tuple[float, float], AdamW] = {}
    groups: dict[AdamW, list[str]] = {}
    for name in names:
        pair = _of(lr, "lr", name), _of(weight_decay, "weight_decay", name)
        if pair not in known:
            known[pair] = AdamW(
                lr=pair[0], beta1=beta1, beta2=beta2, eps=eps, weight_decay=pair[1]
            )
        groups.setdefault(known[pair], []).append(name)
    return groups


def _of(setting: Setting, what: str, name: str) -> float:
    if not isinstance(setting, Mapping):
        return check_number("adamw_step", what, setting)
    if name not in setting:
        raise unknown_name(f"adamw_step: {what}", "parameter", name, setting)
    return check_number("adamw_step", f"{what}['{name}']", setting[name])


def check_names(names: Sequence[str] | None, known: Sequence[str]) -> list[str]:
    """Return the parameters that a step is for: those named, or all that are known.

    Raises:
        DtypeError: If it is no list of names.
        ShapeError: If it is an empty one.
    """
    if names is None:
        return list(known)
    if not _is_list(names):
        raise DtypeError(
            f"adamw_step: parameters is {names!r}; expected a list of names."
        )
    if not names:
        raise ShapeError("adamw_step: parameters is an empty list; name one at least.")
    return list(names)


def _is_list(value: object) -> bool:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return False
    return all(isinstance(each, str) for each in cast("Sequence[object]", value))
