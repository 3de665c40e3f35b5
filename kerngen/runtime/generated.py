"""The files of a generated module: its shaders, and the plans of its kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

from kerngen.plan import tree
from kerngen.plan.lines import PlanSyntaxError
from kerngen.plan.read import KernelLines, PlanLines, PlanVersionError, read_facts
from kerngen.runtime.calls.kernel import (
    Folder,
    Kernel,
    ScalarSpec,
    Temporary,
    TensorSpec,
)
from kerngen.runtime.errors import AbiError
from kerngen.runtime.shipping import require_shaders
from kerngen.runtime.stamp import stamp_of
from kerngen.runtime.struct import UniformStruct
from kerngen.runtime.values import elements
from kerngen.runtime.values import vector_types as leaves
from kerngen.runtime.values.elements import Element

# The element types of plans by name: `f32`, `vec3f`, ..., but for structs.
_ELEMENTS: Final[dict[str, type[Element]]] = {
    name: value
    for module in (elements, leaves)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Element)
}


def _as_given(*values: Any) -> tuple[Any, ...]:
    """Return the values of a uniform struct that has only dims and scalars: themselves."""
    return values


@final
@dataclass(frozen=True, eq=False)
class ModuleFiles:
    """The shaders of a generated module, and the plans of its kernels by name."""

    module: str
    folder: Folder
    plan: str
    """The name of the plan file in the folder."""
    stamp: str
    plans: Mapping[str, KernelLines] = field(repr=False)

    @classmethod
    def of(cls, module: str, file: str) -> ModuleFiles:
        """Read the plans of a module: beside its `file`, or in the memory of its loader.

        Raises:
            AbiError: If the plan file is missing, damaged, of another version, or of
                other sources than the module.
        """
        # A module that was compiled in memory has its files in its loader.
        itself = sys.modules.get(module)
        loader = getattr(getattr(itself, "__spec__", None), "loader", None)
        name = Path(file).stem
        folder: Folder = getattr(loader, "files", None) or (
            Path(file).with_name("wgsl") / name
        )
        if isinstance(folder, Path):
            require_shaders(module, folder)
        plan = _read(module, folder, f"{name}.plan")
        plans = {each.facts.name: each for each in plan.kernels}
        files = cls(module, folder, f"{name}.plan", plan.stamp, plans)
        # The module packs its uniform structs for the shaders of its own build.
        own = stamp_of(getattr(itself, "__doc__", None) or "")
        if own and own != plan.stamp:
            raise files._mismatch("their sources differ")
        return files

    def kernel(
        self,
        name: str,
        reference: Callable[..., Any],
        uniform: type[UniformStruct] = UniformStruct,
        *,
        hosts: Callable[..., tuple[Any, ...]] = _as_given,
        structs: Iterable[type[Element]] = (),
        computed: Callable[[dict[str, Any]], tuple[int, ...]] | None = None,
    ) -> Kernel:
        """Return kernel `name`, made of its plan and the functions of its module.

        `structs` are the classes of the structs that its plan names.

        Raises:
            AbiError: If there is no such plan, or it names an unknown type.
        """
        known = {**_ELEMENTS, **{struct.__name__: struct for struct in structs}}

        def element(name: str) -> type[Element]:
            if name not in known:
                raise self._mismatch(f"there is no element type '{name}'")
            return known[name]

        lines = self.plans.get(name)
        if lines is None:
            raise self._mismatch(f"it has no kernel '{name}'")
        plan = lines.facts
        if bool(plan.computed) != (computed is not None):
            raise self._mismatch(f"they compute other values for '{name}'")
        return Kernel(
            name=plan.name,
            origin=plan.origin,
            folder=self.folder,
            dims=plan.dims,
            tensors=tuple(
                TensorSpec(x.name, element(x.element), x.axes, x.access)
                for x in plan.tensors
            ),
            scalars=tuple(ScalarSpec(x.name, element(x.element)) for x in plan.scalars),
            uniform=uniform,
            hosts=hosts,
            read_body=lambda: self._body(lines),
            reference=reference,
            temporaries=tuple(
                Temporary(x.name, element(x.element), x.axes) for x in plan.temporaries
            ),
            derived=plan.derived,
            checks=plan.checks,
            gathers=plan.gathers,
            requires=plan.requires,
            guard_scalars=plan.guards,
            computed=plan.computed,
            compute=computed,
            stamp=self.stamp,
            gradient=plan.gradient,
        )

    def _body(self, lines: KernelLines) -> tree.Sequence:
        """Return the steps of a kernel, parsed now; raise AbiError if they are damaged."""
        try:
            return lines.body
        except PlanSyntaxError as error:
            fault = f"is damaged, {error}"
            raise _refused(self.module, self.folder, self.plan, fault) from None

    def _mismatch(self, fault: str) -> AbiError:
        return AbiError(
            f"Module '{self.module}' and its plan file don't belong together: {fault}. "
            f"If they were built while it was imported, import it again; else run "
            f"'kerngen build'. If that changes nothing, Python runs old bytecode: "
            f"delete the folder '__pycache__' beside it."
        )


def _read(module: str, folder: Folder, name: str) -> PlanLines:
    file = folder / name
    try:
        return read_facts(file.read_text(encoding="utf-8"))
    except OSError as error:
        fault = f"can't be read ({error.strerror})"
    except PlanVersionError as error:
        fault = f"is of another version: {error}"
    except (PlanSyntaxError, UnicodeDecodeError) as error:
        fault = f"is damaged, {error}"
    raise _refused(module, folder, name, fault)


def _refused(module: str, folder: Folder, name: str, fault: str) -> AbiError:
    place = folder / name if isinstance(folder, Path) else name
    return AbiError(
        f"Module '{module}': its plan {place} {fault}. Run 'kerngen build' again."
    )
