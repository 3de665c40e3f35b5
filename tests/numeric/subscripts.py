"""Shaders that tell of every subscript outside of its array, in any lane.

Guard zones show what matters of an access outside.  Without runtime checks one must not
happen at all, not even where a `select` ignores what was read, nor in workgroup memory,
which has no zones.  So each subscript of a variable is passed through a function that
compares it with its length, notes it if it is outside, and then keeps it inside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias, final

import numpy as np

from kerngen.runtime.device.gpu import COPY_DST, COPY_SRC, STORAGE, GPUDevice
from kerngen.runtime.device.native import MakeModule

Structs: TypeAlias = dict[str, dict[str, str]]
"""The types of members, by struct and name."""

_VARIABLE = re.compile(r"var<[^>]+>\s+(\w+)\s*:\s*(.+);")
_LOCAL = re.compile(r"var\s+(\w+)\s*[=:]\s*(array<[^>]+>|vec[234]f)[(;]")
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{(.*?)\n\}", re.DOTALL)
_MEMBER = re.compile(r"(\w+)\s*:\s*([^:]+?),\s*(?://.*)?$", re.MULTILINE)
_UNTOLD = re.compile(r"\[(?!kept_inside\(|u32\(clamp\(|\d+[ui]?\]).*")
"""A subscript that is neither checked, nor clamped, nor a constant."""

_CONSTANT = re.compile(r"\d+[ui]?")
_VECTOR = re.compile(r"(?:vec|mat(\d)x)(\d)(?:<(\w+)>|([fiuh]))")
_WORD = re.compile(r"\w+")

_NOTING = """
@group(1) @binding(0) var<storage, read_write> outside: array<atomic<u32>>;

fn kept_inside(at: u32, length: u32, number: u32) -> u32 {
    if (at >= length) {
        atomicMax(&outside[0], number + 1u);
    }
    return min(at, max(length, 1u) - 1u);
}
"""


@final
class Instrumented:
    """A shader whose subscripts tell; `texts` are what they are, numbered from `first`."""

    def __init__(self, code: str, first: int = 0) -> None:
        """Rewrite a shader."""
        self.texts: list[str] = []
        self._first = first
        bare = re.sub(r"//.*", "", code)
        self._structs: Structs = {
            name: dict(_MEMBER.findall(body)) for name, body in _STRUCT.findall(bare)
        }
        variables = {*_VARIABLE.findall(bare), *_LOCAL.findall(bare)}
        self._variables: dict[str, str] = dict(variables)
        assert len(self._variables) == len(variables), "two variables of one name"
        self.code = self._rewritten(bare) + _NOTING
        missed = _UNTOLD.search(self.code)
        assert missed is None, f"a subscript of no variable: {missed}"

    def _rewritten(self, text: str) -> str:
        """A text with all its subscripts, and those in them."""
        parts: list[str] = []
        done = 0
        for word in _WORD.finditer(text):
            kind = self._variables.get(word[0])
            free = word.start() >= done and text[word.start() - 1] != "."
            if (
                kind is None
                or not free
                or text[word.end() : word.end() + 1] not in ("[", ".")
            ):
                continue
            parts.append(text[done : word.end()])
            done = self._follow(text, word.end(), word[0], kind, parts)
        return "".join(parts) + text[done:]

    def _follow(
        self, text: str, at: int, path: str, kind: str, parts: list[str]
    ) -> int:
        """Rewrite what follows a variable, as far as it leads to parts of it."""
        while text[at : at + 1] in ("[", "."):
            if text[at] == ".":
                name = _WORD.match(text, at + 1)
                assert name is not None
                kind = self._structs.get(kind, {}).get(name[0], "")
                parts.append(f".{name[0]}")
                path += f".{name[0]}"
                at = name.end()
                continue
            end = _closing(text, at)
            subscript = text[at + 1 : end]
            length, kind = _element(kind, path)
            if not _CONSTANT.fullmatch(subscript):
                number = self._first + len(self.texts)
                self.texts.append(f"{path}[{subscript}]")
                own = self._rewritten(subscript)
                subscript = f"kept_inside(u32({own}), {length}, {number}u)"
            parts.append(f"[{subscript}]")
            path += "[0]"
            at = end + 1
        return at


def _closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] == "[") - (text[at] == "]")
        if depth == 0:
            return at
    raise AssertionError(f"no end of {text[start:]}")


def _element(kind: str, path: str) -> tuple[str, str]:
    """The length of an array or a vector, and what it holds."""
    if kind.startswith("array<"):
        element, _, length = kind[6:-1].rpartition(",")
        if length.strip().isdigit():
            return f"{length.strip()}u", element.strip()
        if element:  # An override is the length.
            return length.strip(), element.strip()
        return f"arrayLength(&{path})", kind[6:-1]
    found = _VECTOR.fullmatch(kind)
    assert found is not None, f"{path} of type {kind!r} has no elements"
    columns, rows, named, letter = found.groups()
    if columns is None:
        return f"{rows}u", ""
    return f"{columns}u", f"vec{rows}<{named}>" if named else f"vec{rows}{letter}"


@final
class _Pass:
    """A compute pass whose shaders have somewhere to tell."""

    def __init__(self, compute: Any, group: object) -> None:
        self.set_pipeline = compute.set_pipeline
        self.set_bind_group = compute.set_bind_group
        self.dispatch_workgroups = compute.dispatch_workgroups
        self.end = compute.end
        compute.set_bind_group(1, group)


@final
class _Encoder:
    """A command encoder of an instrumented device."""

    def __init__(self, encoder: Any, group: object) -> None:
        self.copy_buffer_to_buffer = encoder.copy_buffer_to_buffer
        self.clear_buffer = encoder.clear_buffer
        self.finish = encoder.finish
        self._encoder = encoder
        self._group = group

    def begin_compute_pass(self) -> _Pass:
        return _Pass(self._encoder.begin_compute_pass(), self._group)


@final
class InstrumentedDevice:
    """A device whose shaders note subscripts that are outside."""

    def __init__(self, device: GPUDevice, make_module: MakeModule) -> None:
        """Stand in for a device."""
        self.adapter = device.adapter
        self.limits = device.limits
        self.features = device.features
        self.queue = device.queue
        self.create_buffer = device.create_buffer
        self.create_bind_group_layout = device.create_bind_group_layout
        self.create_compute_pipeline = device.create_compute_pipeline
        self.create_bind_group = device.create_bind_group
        self._subscripts: list[str] = []
        self._device = device
        self._make_module = make_module
        self._outside = device.create_buffer(
            size=4, usage=STORAGE | COPY_SRC | COPY_DST
        )
        entry = {"binding": 0, "visibility": "COMPUTE", "buffer": {"type": "storage"}}
        self._layout = device.create_bind_group_layout(entries=[entry])
        whole = {"buffer": self._outside, "offset": 0, "size": 4}
        self._group = device.create_bind_group(
            layout=self._layout, entries=[{"binding": 0, "resource": whole}]
        )

    def create_shader_module(self, *, label: str, code: str) -> object:
        """Compile the shader with its subscripts told."""
        shader = Instrumented(code, len(self._subscripts))
        self._subscripts += [f"{label}: {text}" for text in shader.texts]
        return self._make_module(label=label, code=shader.code)

    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[Any]) -> object:
        """Describe a pipeline that has somewhere to tell."""
        layouts = [*bind_group_layouts, self._layout]
        return self._device.create_pipeline_layout(bind_group_layouts=layouts)

    def create_command_encoder(self) -> _Encoder:
        """Create an encoder."""
        return _Encoder(self._device.create_command_encoder(), self._group)

    def outside(self) -> str:
        """The last subscript, of the last shader, that was outside, or nothing."""
        read = self.queue.read_buffer(self._outside)
        number = int(np.frombuffer(read, np.uint32)[0])
        self.queue.write_buffer(self._outside, 0, np.zeros(1, np.uint32))
        return self._subscripts[number - 1] if number else ""
