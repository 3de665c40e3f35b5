"""The adapter in plans: facts that guards read, and needs of cases."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Final, final

from kerngen.plan.tree import Needs


@final
@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """The facts of an adapter that guards may read: `adapter.invocations >= 256`.

    `workgroup_bytes` is the workgroup memory of a shader, `invocations` the most in a
    workgroup; `subgroups` and `f16` are features of WGSL.
    """

    workgroup_bytes: int
    invocations: int
    subgroups: bool
    f16: bool
    tensor_bytes: int = 1 << 27
    """The most bytes that a shader binds as one tensor: WebGPU promises 128 MiB."""

    @property
    def facts(self) -> dict[str, int]:
        """The facts by their names in guards, such as `adapter.f16`; features are 0 or 1."""
        return {f"adapter.{name}": int(value) for name, value in asdict(self).items()}

    def offers(self, needs: Needs) -> bool:
        """Whether the adapter has the features and limits that a case needs."""
        own = Needs(self.workgroup_bytes, self.invocations, self.subgroups)
        return needs.within(own)


FACTS: Final = frozenset(f"adapter.{field.name}" for field in fields(AdapterInfo))
"""The names of the facts in guards."""
