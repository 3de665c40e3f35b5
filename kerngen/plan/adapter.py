"""The adapter in plans: facts that guards read, and needs of cases."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Final, final

from kerngen.plan.tree import Needs


@final
@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """The facts of an adapter, as `adapter.invocations` and so on in guards."""

    workgroup_bytes: int
    invocations: int
    subgroups: bool
    f16: bool
    tensor_bytes: int = 1 << 27
    """How many bytes a shader binds as one tensor: 128 MiB is what WebGPU promises."""

    @property
    def facts(self) -> dict[str, int]:
        """The facts by their names in guards."""
        return {f"adapter.{name}": int(value) for name, value in asdict(self).items()}

    def offers(self, needs: Needs) -> bool:
        """Whether the adapter has the features and limits that a case needs."""
        own = Needs(self.workgroup_bytes, self.invocations, self.subgroups)
        return needs.within(own)


FACTS: Final = frozenset(f"adapter.{field.name}" for field in fields(AdapterInfo))
"""The names of the facts, as guards have them."""
