"""The base class of generated compute pipelines, and their dispatches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.runtime.bound.groups import BindGroup
from kerngen.runtime.bound.overrides import Programmable
from kerngen.runtime.context import Context
from kerngen.runtime.errors import ArgumentError, ContextError, DtypeError, FeatureError
from kerngen.runtime.values.kinds import kind_of

Size = tuple[int, int, int]
"""A number of workgroups or invocations along each axis: x, y, z."""


class ComputePipeline(Programmable):
    """The base of generated pipelines, one for each compute entry point.

    Equal pipelines are compiled once for each context, at the first dispatch.
    """

    __slots__ = ()

    GROUPS: ClassVar[tuple[type[BindGroup], ...]] = ()

    @property
    def unfiltered(self) -> frozenset[str]:
        """The names of the textures and samplers that are bound as unfilterable ones."""
        return frozenset(getattr(self, "unfilterable", ()))

    @property
    def workgroup_size(self) -> Size:
        """The number of invocations of a workgroup along each axis.

        FeatureError if the shader computes it.
        """
        raise FeatureError(
            f"{type(self).__name__}: the size of its workgroups is computed in the "
            f"shader; count by dispatch_workgroups()."
        )

    def dispatch(self, ctx: Context | None, *groups: BindGroup) -> Dispatch:
        """Check the bind groups, and return a `Dispatch`, for the generated method `bind`."""
        name = type(self).__name__
        for wanted, given in zip(self.GROUPS, groups, strict=True):
            if not isinstance(given, wanted):
                raise DtypeError(
                    f"{name}.bind: expected a {wanted.__name__}, got {kind_of(given)}."
                )
        found = [each for each in (g.context() for g in groups) if each is not None]
        chosen = ctx or next(iter(found), None)
        if not isinstance(chosen, Context):
            raise ContextError(
                f"{name}.bind: no group has a tensor; pass ctx= to choose the context."
            )
        if any(each is not chosen for each in found):
            raise ContextError(f"{name}.bind: the groups are of different contexts.")
        return Dispatch(self, groups, chosen)


@final
@dataclass(frozen=True, slots=True)
class Dispatch:
    """A pipeline with its bind groups, which can be dispatched many times."""

    pipeline: ComputePipeline
    groups: tuple[BindGroup, ...]
    ctx: Context

    def dispatch_threads(self, x: int, y: int = 1, z: int = 1) -> None:
        """Record as many workgroups as x, y and z invocations along the axes need."""
        size = self.pipeline.workgroup_size
        if min(size) < 1:
            raise ArgumentError(
                f"{type(self.pipeline).__name__}: its workgroups are of {size} "
                f"invocations; expected 1 or more along each axis."
            )
        wanted = self._checked((x, y, z))
        self._run(tuple(-(-n // s) for n, s in zip(wanted, size, strict=True)))

    def dispatch_workgroups(self, x: int, y: int = 1, z: int = 1) -> None:
        """Record a dispatch of x, y and z workgroups along the axes."""
        self._run(self._checked((x, y, z)))

    def _checked(self, counts: Size) -> Size:
        for axis, count in zip("xyz", counts, strict=True):
            if type(count) is not int:
                raise DtypeError(
                    f"{type(self.pipeline).__name__}: {axis} is {kind_of(count)}; "
                    f"expected an int."
                )
            if count < 0:
                raise ArgumentError(
                    f"{type(self.pipeline).__name__}: {axis} is {count}; expected 0 or "
                    f"more."
                )
        return counts

    def _run(self, groups: tuple[int, ...]) -> None:
        x, y, z = groups
        if x and y and z:
            self.ctx.backend.dispatch(self, (x, y, z))
