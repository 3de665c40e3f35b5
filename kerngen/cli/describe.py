"""A kernel's program as data for scripts, and as text for people, made from that data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias, TypedDict

from kerngen.ir.dump import dump_expr
from kerngen.ir.nodes import Expr
from kerngen.layout.struct import StructLayout, uniform_layout
from kerngen.schedule.program import (
    KernelProgram,
    ScheduledStage,
    Shader,
    StageProgram,
    Variant,
)

StyledLine: TypeAlias = tuple[str, str]
"""A line of text and its style, in rich's words."""


class FieldData(TypedDict):
    """A field of the uniform struct."""

    name: str
    type: str
    offset: int
    size: int


class UniformData(TypedDict):
    """The uniform struct."""

    name: str
    size: int
    fields: list[FieldData]


class ShaderData(TypedDict):
    """One dispatch."""

    file: str
    groups: str
    workgroup_size: int
    workgroup_bytes: int
    wgsl: str


class VariantData(TypedDict):
    """Dispatches, and the condition on the dims `d` under which they run."""

    name: str
    when: str
    shaders: list[ShaderData]


class ScheduleData(TypedDict):
    """One way to run a stage, when a guard on dims and scalars holds."""

    name: str
    strategy: str
    when: str
    reason: str
    variants: list[VariantData]


class StageData(TypedDict):
    """A stage, with its schedules in order of preference."""

    name: str
    schedules: list[ScheduleData]


class KernelData(TypedDict):
    """One kernel."""

    name: str
    path: str
    line: int
    doc: str
    source: str
    uniform: UniformData
    stages: list[StageData]


def as_data(program: KernelProgram) -> KernelData:
    """Return what `json.dumps` takes."""
    kernel = program.staged.kernel
    return {
        "name": kernel.name,
        "path": kernel.span.source.path,
        "line": kernel.span.line,
        "doc": kernel.doc,
        "source": kernel.span.text,
        "uniform": _uniform(uniform_layout(kernel)),
        "stages": [_stage(stage) for stage in program.stages],
    }


def _uniform(layout: StructLayout) -> UniformData:
    fields: list[FieldData] = [
        {
            "name": field.name,
            "type": field.type.spelling,
            "offset": field.offset,
            "size": field.size,
        }
        for field in layout.members
    ]
    return {"name": layout.name, "size": layout.size, "fields": fields}


def _stage(stage: StageProgram) -> StageData:
    schedules = [_schedule(schedule) for schedule in stage.schedules]
    return {"name": stage.name, "schedules": schedules}


def _schedule(schedule: ScheduledStage) -> ScheduleData:
    return {
        "name": schedule.label,
        "strategy": schedule.strategy,
        "when": _condition(schedule.guard),
        "reason": schedule.reason,
        "variants": [_variant(variant) for variant in schedule.variants],
    }


def _condition(guard: Expr | None) -> str:
    text = dump_expr(guard) if guard else ""
    return text[1:-1] if text.startswith("(") else text


def _variant(variant: Variant) -> VariantData:
    shaders = [_shader(shader) for shader in variant.shaders]
    return {"name": variant.name, "when": variant.when, "shaders": shaders}


def _shader(shader: Shader) -> ShaderData:
    return {
        "file": f"{shader.stem}.wgsl",
        "groups": shader.groups,
        "workgroup_size": shader.workgroup_size,
        "workgroup_bytes": shader.workgroup_bytes,
        "wgsl": shader.text,
    }


def as_text(program: KernelProgram) -> Iterator[StyledLine]:
    """Yield the lines that `kerngen show` prints."""
    kernel = as_data(program)
    yield f"{kernel['name']}  {kernel['path']}:{kernel['line']}", "bold"
    yield "", ""
    yield from ((f"  {line}".rstrip(), "") for line in kernel["source"].splitlines())
    yield "", ""
    yield from _uniform_text(kernel["uniform"])
    for stage in kernel["stages"]:
        yield "", ""
        yield from _stage_text(stage)
    for stage in kernel["stages"]:
        for schedule in stage["schedules"]:
            yield from _wgsl_text(schedule)


def _uniform_text(uniform: UniformData) -> Iterator[StyledLine]:
    if not uniform["fields"]:
        yield "no uniform struct", "bold"
        return
    yield f"uniform struct {uniform['name']}, {uniform['size']} bytes", "bold"
    yield "  offset  size  field", "dim"
    for field in uniform["fields"]:
        name = f"{field['name']}: {field['type']}"
        yield f"  {field['offset']:6}  {field['size']:4}  {name}", ""


def _stage_text(stage: StageData) -> Iterator[StyledLine]:
    yield f"stage {stage['name']}", "bold"
    for number, schedule in enumerate(stage["schedules"], 1):
        when = f" when {schedule['when']}" if schedule["when"] else ""
        yield f"  {number}. {schedule['name']}{when}  ({schedule['reason']})", ""
        for variant in schedule["variants"]:
            when = _plain(variant["when"]) or "always"
            yield f"     {variant['name'] or 'all sizes'}: {when}", ""
            for shader in variant["shaders"]:
                size, memory = shader["workgroup_size"], shader["workgroup_bytes"]
                yield f"       {shader['file']}", ""
                groups = _plain(shader["groups"])
                yield f"       {groups} workgroups of {size}, {memory} B", "dim"


def _plain(host_code: str) -> str:
    """Return an expression over the dims `d` with the dims by name."""
    return re.sub(r'\bd\["(\w+)"\]', r"\1", host_code)


def _wgsl_text(schedule: ScheduleData) -> Iterator[StyledLine]:
    for variant in schedule["variants"]:
        for shader in variant["shaders"]:
            yield "", ""
            yield f"---- {shader['file']}", "bold"
            yield from ((line, "") for line in shader["wgsl"].splitlines())
