"""The structs of a program and the uniform structs of its kernels, laid out.

The WGSL struct, the Python dataclass with its NumPy dtype, and the documentation are
all printed from a `StructLayout`: the one source of every offset.
"""

from __future__ import annotations

from kerngen.ir.cached import cached_on_instance
from kerngen.ir.memory import Leaf, Member, Struct
from kerngen.ir.nodes import Kernel
from kerngen.ir.types import Scalar
from kerngen.layout.rules import Space
from kerngen.layout.types import StructLayout, lay_out, place


@cached_on_instance
def uniform_layout(kernel: Kernel) -> StructLayout:
    """Lay out a kernel's uniform struct: dims, value parameters, hosts, in that order.

    It is the same for all of the kernel's stages and schedules.  In WGSL:

        struct Uniform {
            n: u32,  // offset 0, a dim
            a: f32,  // offset 4, a parameter
        }
    """
    return place(
        uniform_name(kernel.name),
        (
            *(Member(dim, Leaf(Scalar.U32)) for dim in kernel.lengths),
            *(Member(p.name, p.memory, doc=p.doc) for p in kernel.parameters),
            *(Member(host.name, Leaf(host.type)) for host in kernel.hosts),
        ),
        Space.UNIFORM,
    )


def struct_layout(struct: Struct, space: Space = Space.STORAGE) -> StructLayout:
    """Lay out a struct of the program, as storage buffers or as uniform buffers hold it."""
    laid = lay_out(struct, space)
    assert isinstance(laid, StructLayout), "a struct is laid out as one"
    return laid


def uniform_name(kernel: str) -> str:
    """Return the name of a kernel's uniform struct: `LinearGeluUniform` for `linear_gelu`."""
    return f"{pascal_case(kernel)}Uniform"


def pascal_case(name: str) -> str:
    """Return `LinearGelu` for `linear_gelu`."""
    words = (word for word in name.split("_") if word)
    return "".join(word[:1].upper() + word[1:] for word in words) or "Kernel"
