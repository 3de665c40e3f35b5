"""The optional parts of kerngen, and the command that installs each.

`pip install kerngen` installs the runtime, which needs NumPy and wgpu alone: a wheel of
generated kernels depends on that.  The compiler, training and the standard kernels need
more packages.  A module that needs them names the part around its imports:

    with needing("kerngen.train", TRAIN):
        from kerngen.train.trainer import Trainer
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from types import TracebackType
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


@final
@dataclass(frozen=True, slots=True)
class needing:  # noqa: N801 - a context manager reads as a verb
    """Turn a failed import in a block into an error that names the missing part.

    `user` is the name of the module that needs the part. Of nested blocks, the
    outermost sets the name.
    """

    user: str
    part: OptionalPart

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Raise `MissingPartError` for a missing package of the part."""
        if isinstance(error, ModuleNotFoundError):
            package = (error.name or "").partition(".")[0]
            if package in self.part.packages:
                raise _missing(self.user, self.part, package) from None
