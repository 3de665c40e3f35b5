"""The optional parts of kerngen, and the command that installs each.

`pip install kerngen` installs the runtime, which needs NumPy and wgpu alone: a wheel of
generated kernels depends on that.  The compiler, training and the standard kernels need
more packages.  A module that needs them names the part around its imports:

    with needing("kerngen.train", TRAIN):
        from kerngen.train.trainer import Trainer
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final, final

KERNELS: Final = "kerngen-kernels"
"""The distribution of the standard kernels, the package `kerngen_kernels`."""


@final
@dataclass(frozen=True, slots=True)
class OptionalPart:
    """An optional part: its name, its extra for pip, and the packages that it needs."""

    name: str
    requirement: str
    packages: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that installs the part."""
        wanted = [self.requirement]
        if "kerngen_kernels" in self.packages and find_spec("kerngen_kernels") is None:
            from kerngen.origin import kernels_address  # noqa: PLC0415 - it is slow

            if address := kernels_address():
                wanted = [address, *(each for each in wanted if each != KERNELS)]
        return " ".join(["pip install", *(f'"{each}"' for each in wanted)])


COMPILER: Final = OptionalPart(
    "the compiler",
    "kerngen[compiler]",
    (
        "black",
        "click",
        "hypothesis",
        "lark",
        "platformdirs",
        "pygments",
        "rich",
        "watchfiles",
    ),
)
STANDARD: Final = OptionalPart("the standard kernels", KERNELS, ("kerngen_kernels",))
TRAIN: Final = OptionalPart(
    "the packages for training", "kerngen[train]", ("kerngen_kernels", "safetensors")
)
BENCH: Final = OptionalPart(
    "the packages for benchmarks",
    "kerngen[bench]",
    (*COMPILER.packages, *TRAIN.packages, "matplotlib"),
)
LSP: Final = OptionalPart(
    "the language server",
    "kerngen[lsp]",
    (*COMPILER.packages, "lsprotocol", "pygls"),
)

PARTS: Final = (COMPILER, STANDARD, TRAIN, BENCH, LSP)


@final
class MissingPartError(ModuleNotFoundError):
    """Raised if a part of kerngen is not installed."""


def missing_part(user: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error that names the missing part, or `error` if it is of no part."""
    package = (error.name or "").partition(".")[0]
    found = (part for part in PARTS if package in part.packages)
    part = next(found, None)
    if part is None or isinstance(error, MissingPartError):
        return error
    return _missing(user, part, package)


def _missing(user: str, part: OptionalPart, package: str) -> MissingPartError:
    return MissingPartError(
        f"{user} needs {part.name}, which this installation of kerngen lacks (there is "
        f"no package '{package}'). Install: {part.command}",
        name=package,
    )


@contextmanager
def needing(user: str, part: OptionalPart) -> Generator[None]:
    """Turn a failed import in a block into an error that names the missing part.

    `user` is the name of the module that needs the part. Of nested blocks, the
    outermost sets the name.

    Raises:
        MissingPartError: If a package of the part is missing, at each attempt.
    """
    before = frozenset(sys.modules)
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in part.packages:
            raise
        # What was imported goes: with a part of them there, the next attempt would import
        # modules in another order, and fail by an import that is circular.
        for name in sys.modules.keys() - before:
            if name.startswith("kerngen."):
                del sys.modules[name]
        raise _missing(user, part, package) from None
