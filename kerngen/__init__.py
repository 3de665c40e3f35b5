"""kerngen: index equations to WGSL, typed Python bindings and a NumPy reference.

    import kerngen

    layers = kerngen.load("dsl/layers.kern")
    kernels = kerngen.compile("kernel double(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }")

Importing this module loads nothing; the compiler follows at the first of these calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kerngen.jit import (
        CompileError,
        CompileWarning,
        KernelModule,
        compile,  # noqa: A004 - `kerngen.compile` reads as what it does
        load,
        load_ipython_extension,
    )

__version__ = "0.1.0"

__all__ = [
    "CompileError",
    "CompileWarning",
    "KernelModule",
    "__version__",
    "compile",
    "load",
    "load_ipython_extension",
]


def __getattr__(name: str) -> object:
    """Import a part of the compiler when it is first used."""
    if name not in __all__:
        raise AttributeError(f"module 'kerngen' has no attribute '{name}'")
    from kerngen import jit  # noqa: PLC0415 - importing kerngen must stay cheap

    return getattr(jit, name)


def __dir__() -> list[str]:
    """Return the public names, some of which are imported on first use."""
    return sorted({*globals(), *__all__})
