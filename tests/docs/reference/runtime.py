"""The page of the runtime's API, made of the docstrings of what it exports."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Final, cast

import kerngen
import kerngen.runtime as gpu
from tests.docs.reference.table import listed, table

_INTRODUCTION: Final = """\
# The runtime's API

Made from the docstrings of `kerngen.runtime`, which are also what `help()` shows. [The runtime](../runtime.md) has examples.

```python
import kerngen.runtime as gpu
```

Everything that generated modules and your own programs use is here: contexts, tensors, element types and errors. At the end: `kerngen.compile` and `kerngen.load`, which make modules without files.
"""

CLASSES: Final = (
    gpu.Context,
    gpu.Tensor,
    gpu.Struct,
    gpu.Capture,
    gpu.Span,
    gpu.LateRead,
    gpu.Profile,
    gpu.Event,
    gpu.Choice,
    gpu.Counters,
    gpu.Adapter,
)
"""The classes that a program meets, the most important first."""

INTERNAL: Final = frozenset(
    {
        *("finish", "check_watches", "lease", "binding", "direct", "signature"),
        *("place", "as_array", "block", "changeable", "end", "ended", "recorded"),
    }
)
"""Members without an underscore that are the runtime's own affair all the same."""


_SECTION: Final = re.compile(r"^(\w+:)\n((?: {4}.*\n?)+)", re.MULTILINE)


class _Bare(str):
    """An annotation that is shown as it was written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def page() -> str:
    """Return the page in Markdown."""
    return "\n".join(_parts())


def functions() -> dict[str, Callable[..., object]]:
    """Return the functions that are exported, by name."""
    return {
        name: value
        for name in gpu.__all__
        if inspect.isfunction(value := getattr(gpu, name))
    }


def _parts() -> Iterator[str]:
    yield _INTRODUCTION
    yield "## Functions\n"
    for name, function in functions().items():
        yield f"### `{name}{_signature(function)}`\n"
        yield f"{_doc(function)}\n"
    for class_ in CLASSES:
        yield from _class(class_)
    yield from _types()
    yield from _errors()
    yield "## Without files\n"
    yield "`import kerngen`, with the compiler: [Notebooks](../notebooks.md) shows how.\n"
    for name, function in (("compile", kerngen.compile), ("load", kerngen.load)):
        yield f"### `{name}{_signature(function)}`\n"
        yield f"{_doc(function)}\n"
    for made in (kerngen.KernelModule, kerngen.CompileError):
        yield f"### `{made.__name__}`\n"
        yield f"{_doc(made)}\n"


def _class(class_: type) -> Iterator[str]:
    yield f"## {class_.__name__}\n"
    yield f"{_doc(class_)}\n"
    if fields := getattr(class_, "__dataclass_fields__", None):
        typed = cast("dict[str, dataclasses.Field[object]]", fields)
        shown = [f"{name}: {field.type}" for name, field in typed.items()]
        yield f"Its fields: {listed(shown)}.\n"
    for name, member in _members(class_):
        if isinstance(member, property):
            yield f"### `{name}`\n"
        else:
            yield f"### `{name}{_signature(member, method=True)}`\n"
        yield f"{_doc(member)}\n"


def _members(class_: type) -> Iterator[tuple[str, Callable[..., object] | property]]:
    for name, value in vars(class_).items():
        member = getattr(value, "__func__", value)
        known = inspect.isfunction(member) or isinstance(member, property)
        if known and not name.startswith("_") and name not in INTERNAL:
            yield name, member


def _types() -> Iterator[str]:
    elements = [
        (f"`{name}`", _doc(value))
        for name, value in _exported(type)
        if issubclass(value, gpu.Element) and value not in {gpu.Element, gpu.Struct}
    ]
    yield "## Element types\n"
    yield f"{_doc(gpu.Element)}\n"
    yield table(("type", ""), elements)
    yield (
        "`NumpyType` is `np.float32`, `np.float16`, `np.int32` or `np.uint32`, or the dtype "
        "of one: it is taken for `f32`, `f16`, `i32` or `u32`.\n"
    )
    yield (
        "`Scalar[E]`, `Vector[E]`, `Matrix[E]`, `Tensor3[E]` and `Tensor4[E]` are "
        "`Tensor[E, rank]` of rank 0 to 4, for annotations. What matrix parameters take "
        f"are tuples of columns: {listed(n for n in gpu.__all__ if n.startswith('Mat') and n != 'Matrix')}.\n"
    )


def _errors() -> Iterator[str]:
    found = [
        (
            f"`{name}`",
            ", ".join(f"`{b.__name__}`" for b in value.__bases__),
            _doc(value),
        )
        for name, value in _exported(type)
        if issubclass(value, Exception)
    ]
    yield "## Errors and warnings\n"
    yield table(
        ("name", "is a", ""), [(a, b, " ".join(c.split())) for a, b, c in found]
    )
    yield "## Constants\n"
    yield (
        f"`ABI` ({gpu.ABI}) is the version of the agreement between generated modules and "
        "the runtime. `WEBGPU_LIMITS` are the limits that every WebGPU adapter meets: "
        "`open(limits=WEBGPU_LIMITS)` runs as if on the least of them.\n"
    )


def _exported(kind: type) -> Iterable[tuple[str, type]]:
    pairs = ((name, getattr(gpu, name)) for name in gpu.__all__)
    return [(name, cast("type", value)) for name, value in pairs if type(value) is kind]


def _signature(function: Callable[..., object], *, method: bool = False) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[method:]
    bare = [p.replace(annotation=_annotation(p.annotation)) for p in parameters]
    result = _annotation(signature.return_annotation)
    return str(signature.replace(parameters=bare, return_annotation=result))


def _annotation(written: object) -> object:
    return _Bare(written) if isinstance(written, str) else written


def _doc(what: object) -> str:
    text = inspect.getdoc(what)
    assert text, what
    return _SECTION.sub(_listed_section, text)


def _listed_section(section: re.Match[str]) -> str:
    """Return a section such as `Raises:` with each entry as an element of a list."""
    entries = re.sub(r"^(?=\S)", "- ", textwrap.dedent(section[2]), flags=re.MULTILINE)
    return f"{section[1]}\n\n{entries}"
