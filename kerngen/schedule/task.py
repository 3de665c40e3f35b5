"""A strategy's input: one stage of a kernel, with its surroundings."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import final

from kerngen.ir.analysis.requirements import facts_of
from kerngen.ir.nodes import Expr, Function, Index, Kernel, Reduce
from kerngen.ir.staging.stages import Stage, StagedKernel
from kerngen.layout.types import StructLayout
from kerngen.plan.facts import Facts
from kerngen.schedule.program import DispatchShader
from kerngen.schedule.scalar_only import is_scalar_only, plain_functions

Options = dict[str, tuple[int, ...]]
"""A schedule's options by name: `tile` -> (128, 64, 16)."""


@final
@dataclass(frozen=True)
class Task:
    """One stage of a kernel, to be scheduled.

    - `staged`, `stage`: the kernel in stages, and the stage
    - `functions`: the functions of the file, by name
    - `layout`: the layout of the uniform struct
    - `stem`, `label`: the kernel and stage, and the strategy's name with its options: the
      parts of a file's name, `softmax.y` and `map` of `softmax.y.map.wgsl`
    - `end`: the number of the stage before which a run of stages that begins here must end
    - `_written`: the shaders that `once` has written
    """

    staged: StagedKernel
    stage: Stage
    functions: dict[str, Function]
    layout: StructLayout
    stem: str
    label: str = ""
    end: int = sys.maxsize
    _written: dict[Hashable, DispatchShader] = field(
        default_factory=dict[Hashable, DispatchShader], repr=False, compare=False
    )

    def once(
        self, key: Hashable, write: Callable[[], DispatchShader]
    ) -> DispatchShader:
        """Return a shader that several variants or schedules of the stage run, made only once.

        `write` makes it, at the first call.  `key` has all that the shader depends on besides
        stage, stem and label.
        """
        whole = (self.stage, self.stem, self.label, key)
        if whole not in self._written:
            self._written[whole] = write()
        return self._written[whole]

    @property
    def kernel(self) -> Kernel:
        """The kernel that the stage belongs to."""
        return self.staged.kernel

    @cached_property
    def plain_functions(self) -> frozenset[str]:
        """The names of the functions that compute with scalars alone."""
        return plain_functions(self.functions.values())

    @cached_property
    def facts(self) -> Facts:
        """The facts that hold in every call, as the kernel requires them."""
        return facts_of(self.kernel)

    @property
    def following(self) -> tuple[Stage, ...]:
        """The stages that may run together: this one, and those after it with scalars alone."""
        stages = self.staged.stages[self._number : self.end]
        return tuple(takewhile(is_scalar_only, stages)) or (self.stage,)

    @property
    def other_stages(self) -> tuple[Stage, ...]:
        """The other stages of the kernel."""
        return tuple(stage for stage in self.staged.stages if stage != self.stage)

    @property
    def _number(self) -> int:
        return self.staged.stages.index(self.stage)

    def at_most(self, count: int) -> Task:
        """Return the task with at most `count` stages to run together, its own included."""
        return replace(self, end=self._number + count)

    def scratch_name(self, wanted: str) -> str:
        """Return a name for a scratch buffer, like `wanted`, that no kernel's tensor has."""
        tensors = (*self.kernel.tensors, *self.staged.temporaries)
        taken = {tensor.name for tensor in tensors}
        while wanted in taken:
            wanted += "_"
        return wanted

    @property
    def domain(self) -> tuple[Index, ...]:
        """The indices of the stage's domain."""
        return self.stage.domain

    @property
    def values(self) -> tuple[Expr, ...]:
        """The value of each step of the stage, in order."""
        return tuple(step.value for step in self.stage.steps)

    @property
    def reduction(self) -> Reduce | None:
        """The stage's reduction, if it has one."""
        return self.stage.reduction
