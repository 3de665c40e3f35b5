"""Structs written by hand, as the compiler would print their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kerngen.runtime import Mat3x3, f16, f32, i32, mat3x3f, u32, vec2f, vec3f
from kerngen.runtime.struct import Field, Struct, spaced


@dataclass(frozen=True, slots=True)
class Particle(Struct):
    """A struct of scalars, a vector and an array: 40 bytes, rounded up to 48."""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("pos", vec3f, offset=0),
        Field("mass", f32, offset=12),
        Field("id", u32, offset=16),
        Field("charge", i32, offset=20),
        Field("trail", vec2f, offset=24, lengths=(2,), stride=8),
        Field("heat", f16, offset=40),
    )
    SIZE: ClassVar[int] = 48
    DTYPE: ClassVar[np.dtype[np.void]] = np.dtype(
        {
            "names": ["pos", "mass", "id", "charge", "trail", "heat"],
            "formats": [
                ("<f4", (3,)),
                "<f4",
                "<u4",
                "<i4",
                ("<f4", (2, 2)),
                "<f2",
            ],
            "offsets": [0, 12, 16, 20, 24, 40],
            "itemsize": 48,
        }
    )

    pos: tuple[float, float, float]
    mass: float
    id: int
    charge: int
    trail: tuple[tuple[float, float], ...]
    heat: float


@dataclass(frozen=True, slots=True)
class Cluster(Struct):
    """Structs in a struct, and a matrix with gaps between its columns."""

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("members", Particle, offset=0, lengths=(2,), stride=48),
        Field("axes", mat3x3f, offset=96, column_stride=16),
        Field("first", Particle, offset=144),
    )
    SIZE: ClassVar[int] = 192
    DTYPE: ClassVar[np.dtype[np.void]] = np.dtype(
        {
            "names": ["members", "axes", "first"],
            "formats": [
                (Particle.DTYPE, (2,)),
                (spaced(("<f4", (3,)), 16), (3,)),
                Particle.DTYPE,
            ],
            "offsets": [0, 96, 144],
            "itemsize": 192,
        }
    )

    members: tuple[Particle, ...]
    axes: Mat3x3
    first: Particle


AXES = ((1.0, 2.0, 3.0), (0.5, -1.0, 0.0), (4.0, 5.0, 6.0))


def particle(number: int = 0) -> Particle:
    """Return a particle that tells from others."""
    trail = ((number + 0.5, -0.0), (float("inf"), 2.0))
    return Particle((1.0, number, -2.5), 0.25, number, -number, trail, 1.5)
