"""Layouts before their judges: the GPU, naga, Tint, and the specification's text.

The GPU reads what the generated classes packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kerngen.ir.memory import Struct, holds_half
from kerngen.layout.rules import Space
from kerngen.layout.struct import struct_layout
from kerngen.layout.types import StructLayout, place
from kerngen.runtime import Struct as RuntimeStruct
from tests.emit.declared import declared, distinct, uniform_class
from tests.judges.tint import Tint

from . import spec
from .bench import Bench, LayoutMismatchError
from .drawn import Drawing
from .probe import Bytes, Probe, bytes_for
from .scalars import places

BATCH: Final = 10
"""The structs of a shader, for each address space."""

_SLOW: Final = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)


def lay_out_for(space: Space, struct: Struct) -> StructLayout:
    """Return a struct as an element of a tensor, or as the parameters of a kernel."""
    if space is Space.STORAGE:
        return struct_layout(struct)
    return place("Parameters", struct.members, space)


def agree_with_specification(struct: Struct) -> None:
    """Raise `LayoutMismatchError` where the specification's text says something else."""
    for space in Space:
        uniform = space is Space.UNIFORM
        laid = lay_out_for(space, struct)
        ours = [(p.offset, p.storage.size) for p in places(laid, 0, "", "{}")]
        theirs = [*spec.scalars_of_members(struct.members, 0, uniform=uniform)]
        size = spec.size_of_members(struct.members, uniform=uniform)
        if (ours, laid.size) != (theirs, size):
            text = f"{struct} in {space.value}: {ours}, {laid.size}"
            raise LayoutMismatchError(f"{text}; by the specification {theirs}, {size}")
        whole = struct_layout(struct, space)
        nested = spec.align_and_size(struct, uniform=uniform)
        if (whole.align, whole.size) != nested:
            text = f"{struct} in others in {space.value}: {whole.align}, {whole.size}"
            raise LayoutMismatchError(f"{text}; by the specification {nested}")


def random_bytes(layouts: Iterable[StructLayout], bits: int) -> list[Bytes]:
    """Return random bits for each binding."""
    rng = np.random.default_rng(bits)
    return [bytes_for(laid, rng) for laid in layouts]


def packed(probe: Probe, data: Sequence[Bytes]) -> list[Bytes]:
    """Return what the generated classes make of the bytes: the same bits in each field.

    The parameters of a kernel are no class that could be made alone: their bytes stay.
    """
    structs = [laid.struct for laid in probe.layouts if laid.struct is not None]
    with declared(*structs) as module:
        found = [
            _packed(module, laid, raw)
            for laid, raw in zip(probe.layouts, data, strict=True)
        ]
    if probe.expected(found) != probe.expected(data):
        raise LayoutMismatchError(f"Python packs otherwise:\n{probe.shader}")
    return found


def _packed(module: Any, laid: StructLayout, raw: Bytes) -> Bytes:
    if laid.struct is None:
        return raw
    of_storage: type[RuntimeStruct] = getattr(module, laid.struct.name)
    is_uniform = laid.space is Space.UNIFORM
    cls = uniform_class(module, of_storage) if is_uniform else of_storage
    whole = len(raw) // laid.size * laid.size
    values = cls.unpack_array(raw[:whole].view(cls.DTYPE))
    bytes_ = cls.pack_array(values).view(np.uint8)
    return np.concatenate((bytes_, np.zeros(len(raw) - whole, np.uint8)))


def _renamed(struct: Struct) -> Struct:
    """Return a struct that shares its name, and those in it, with no other."""
    renamed = distinct(struct)
    assert isinstance(renamed, Struct), "a struct stays one"
    return renamed


@dataclass(frozen=True, repr=False)
class Batch:
    """Structs for one probe, as elements of tensors and as parameters."""

    stored: list[Struct]
    bound: list[Struct]
    bits: int

    def __repr__(self) -> str:
        return f"<{len(self.stored)} and {len(self.bound)} structs>"


@dataclass(frozen=True)
class Judges:
    """The GPU with naga, and Tint."""

    bench: Bench
    tint: Tint

    def judge(
        self, storage: Iterable[Struct], uniform: Iterable[Struct], bits: int = 0
    ) -> None:
        """Raise `LayoutMismatchError` where a judge reads one of the structs otherwise."""
        stored = [_renamed(struct) for struct in storage]
        bound = [_renamed(struct) for struct in uniform]
        for struct in (*stored, *bound):
            agree_with_specification(struct)
        layouts = (
            *(struct_layout(struct) for struct in stored),
            # Some are one parameter, and some all of them.
            *(struct_layout(struct, Space.UNIFORM) for struct in bound[::2]),
            *(lay_out_for(Space.UNIFORM, struct) for struct in bound[1::2]),
        )
        probe = Probe(layouts, any(map(holds_half, (*stored, *bound))))
        self._run(probe, packed(probe, random_bytes(layouts, bits)))

    def ask(
        self, layouts: tuple[StructLayout, ...], *, is_half: bool, bits: int = 0
    ) -> None:
        """Raise `LayoutMismatchError` where the GPU, naga or Tint reads otherwise."""
        self._run(Probe(layouts, is_half), random_bytes(layouts, bits))

    def _run(self, probe: Probe, data: Sequence[Bytes]) -> None:
        self.bench.check(probe, data)
        self.ask_tint(probe)

    def ask_tint(self, probe: Probe) -> None:
        """Hold that Tint takes a shader, and no struct as smaller than it is.

        Of each struct a field is judged, too: it starts neither earlier nor later.
        """
        if message := self.tint.refuses(probe.shader):
            raise LayoutMismatchError(f"Tint: {message}\n{probe.shader}")
        for number in range(len(probe.layouts)):
            shader = probe.too_small(number)
            if "size" not in self.tint.refuses(shader):
                raise LayoutMismatchError(f"To Tint this is smaller:\n{shader}")
            shader = probe.too_near(number)
            if "size" not in self.tint.refuses(shader):
                raise LayoutMismatchError(
                    f"To Tint this field starts earlier:\n{shader}"
                )

    def campaign(self, number: int, count: int) -> int:
        """Judge `count` structs, always the same ones; return how many were."""
        judged = 0

        # Without shrinking, which takes minutes: a mismatch names the struct.
        @seed(number)
        @settings(
            max_examples=-(-count // (2 * BATCH)),
            database=None,
            deadline=None,
            phases=(Phase.generate,),
            report_multiple_bugs=False,
            suppress_health_check=_SLOW,
        )
        @given(batches(halves=self.bench.has_halves))
        def judge(batch: Batch) -> None:
            nonlocal judged
            self.judge(batch.stored, batch.bound, batch.bits)
            judged += len(batch.stored) + len(batch.bound)

        judge()
        return judged


@st.composite
def batches(draw: st.DrawFn, *, halves: bool) -> Batch:
    """Draw the structs of a probe, and a number for their bits."""
    stored, bound = (
        [draw(Drawing(halves=halves, uniform=uniform).structs()) for _ in range(BATCH)]
        for uniform in (False, True)
    )
    return Batch(stored, bound, draw(st.integers(0, 2**32 - 1)))
