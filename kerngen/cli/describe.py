"""A kernel's program as data for scripts, and as text for people, made from that data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias, TypedDict

from kerngen.ir.nodes import Expr, Role, Tensor
from kerngen.ir.reads import tensors_read
from kerngen.ir.sizes import SizeMaker
from kerngen.ir.stages import StagedKernel, Write, computed_by
from kerngen.layout.struct import uniform_layout
from kerngen.layout.types import StructLayout
from kerngen.plan.size import ALWAYS
from kerngen.plan.text import guard_text, to_text
from kerngen.schedule.costs import bytes_moved, operations, show_polynomial
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
    subgroups: bool
    wgsl: str


class VariantData(TypedDict):
    """Dispatches, and the condition on the dims `d` under which they run."""

    name: str
    when: str
    shaders: list[ShaderData]


class ScheduleData(TypedDict):
    """One way to run a stage, when a guard on dims and scalars holds.

    `covers` names the stages after it that run in the same dispatches, and `keeps` what
    these then hand to each other without storing it.  `bytes` and `operations` are what
    all of them cost at the least.
    """

    name: str
    strategy: str
    when: str
    reason: str
    covers: list[str]
    keeps: list[str]
    bytes: str
    operations: str
    variants: list[VariantData]


class StageData(TypedDict):
    """A stage, with its schedules in order of preference.

    `computes` holds the statements that it fuses.  `bytes` and `operations` are what it
    costs at the least where it runs alone, over the dims.  `apart` is why it is not fused
    with the stage before it.  `within` names the earlier stages of which a
    schedule runs it, too; without schedules of its own it always runs so.  `others` says
    why not another strategy.
    """

    name: str
    domain: str
    computes: list[str]
    reads: list[str]
    writes: list[str]
    bytes: str
    operations: str
    apart: str
    within: list[str]
    schedules: list[ScheduleData]
    others: dict[str, str]


class KernelData(TypedDict):
    """One kernel; `python` is what Python calls it, inside of the output's package.

    `temporaries` live between stages; `inlined` lets are computed where they are used.
    """

    name: str
    python: str
    path: str
    line: int
    doc: str
    source: str
    uniform: UniformData
    temporaries: list[str]
    inlined: list[str]
    stages: list[StageData]


def as_data(program: KernelProgram, python: str) -> KernelData:
    """Return what `json.dumps` takes."""
    kernel = program.staged.kernel
    return {
        "name": kernel.name,
        "python": python,
        "path": kernel.span.source.path,
        "line": kernel.span.line,
        "doc": kernel.doc,
        "source": kernel.span.text,
        "uniform": _uniform(uniform_layout(kernel)),
        "temporaries": [_tensor(tensor) for tensor in program.temporaries],
        "inlined": _inlined(program.staged),
        "stages": [*_stages(program)],
    }


def _tensor(tensor: Tensor) -> str:
    return f"{tensor.name}[{', '.join(map(str, tensor.extents))}]"


def _inlined(staged: StagedKernel) -> list[str]:
    """Name the lets that no stage computes as values of their own."""
    computed = {computed_by(step) for stage in staged.stages for step in stage.steps}
    lets = (s.target for s in staged.kernel.body if s.target.role is Role.LET)
    return [let.name for let in lets if let.name not in computed]


def _uniform(layout: StructLayout) -> UniformData:
    fields: list[FieldData] = [
        {
            "name": field.name,
            "type": field.type.spelling,
            "offset": field.offset,
            "size": field.size,
        }
        for field in layout.fields
    ]
    return {"name": layout.name, "size": layout.size, "fields": fields}


def _stages(program: KernelProgram) -> Iterator[StageData]:
    pairs = zip(program.stages, program.staged.stages, strict=True)
    for number, (scheduled, stage) in enumerate(pairs, 1):
        read = dict.fromkeys(
            tensor.name for step in stage.steps for tensor in tensors_read(step.value)
        )
        yield {
            "name": stage.name,
            "domain": ", ".join(f"{i.name} < {i.extent}" for i in stage.domain),
            "computes": [step.text for step in stage.steps if step.text],
            "reads": [*read],
            "writes": _distinct(
                s.tensor.name for s in stage.steps if isinstance(s, Write)
            ),
            "bytes": show_polynomial(bytes_moved([stage])),
            "operations": show_polynomial(operations([stage], program.functions)),
            "apart": stage.apart,
            "within": [*_within(program.stages, number - 1)],
            "schedules": [
                _schedule(schedule, program, number - 1)
                for schedule in scheduled.schedules
            ],
            "others": dict(scheduled.others),
        }


def _within(stages: Sequence[StageProgram], number: int) -> Iterator[str]:
    """Yield the names of the earlier stages that may run the one of a number, too."""
    for first, stage in enumerate(stages[:number]):
        if any(first + len(s.stages) > number for s in stage.schedules):
            yield stage.name


def _schedule(
    schedule: ScheduledStage, program: KernelProgram, number: int
) -> ScheduleData:
    """Describe a schedule of the stage of a number, and of those that it covers."""
    stages = program.staged.stages[number : number + len(schedule.stages)]
    written = {s.tensor for x in stages for s in x.steps if isinstance(s, Write)}
    stored = schedule.bound
    kept = [
        t for t in program.staged.temporaries if t in written and t.name not in stored
    ]
    return {
        "name": schedule.label,
        "strategy": schedule.strategy,
        "when": _condition(schedule.guard),
        "reason": schedule.reason,
        "covers": [*schedule.stages[1:]],
        "keeps": [tensor.name for tensor in kept],
        "bytes": show_polynomial(bytes_moved(stages, kept)),
        "operations": show_polynomial(operations(stages, program.functions)),
        "variants": [_variant(variant) for variant in schedule.variants],
    }


def _condition(guard: Expr | None) -> str:
    return guard_text(SizeMaker({}, str).guard(guard)) if guard else ""


def _variant(variant: Variant) -> VariantData:
    shaders = [_shader(shader) for shader in variant.shaders]
    return {
        "name": variant.name,
        "when": "" if variant.when == ALWAYS else guard_text(variant.when),
        "shaders": shaders,
    }


def _shader(shader: Shader) -> ShaderData:
    return {
        "file": f"{shader.stem}.wgsl",
        "groups": to_text(shader.groups),
        "workgroup_size": shader.workgroup_size,
        "workgroup_bytes": shader.workgroup_bytes,
        "subgroups": shader.subgroups,
        "wgsl": shader.text,
    }


def as_text(kernel: KernelData, *, wgsl: bool) -> Iterator[StyledLine]:
    """Yield the lines that `kerngen show` prints, with the shaders or without."""
    yield f"{kernel['name']}  {kernel['path']}:{kernel['line']}", "bold"
    if kernel["python"] != f"{PurePosixPath(kernel['path']).stem}.{kernel['name']}":
        yield f"in Python: {kernel['python']}", ""
    yield "", ""
    yield from ((f"  {line}".rstrip(), "") for line in kernel["source"].splitlines())
    yield "", ""
    yield from _uniform_text(kernel["uniform"])
    if kernel["inlined"]:
        yield f"inlined: {', '.join(kernel['inlined'])}", ""
    if kernel["temporaries"]:
        yield f"temporaries: {', '.join(kernel['temporaries'])}", ""
    before = ""
    for stage in kernel["stages"]:
        yield "", ""
        yield from _stage_text(stage, before)
        before = stage["name"]
    for stage in kernel["stages"] if wgsl else ():
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


def _stage_text(stage: StageData, before: str) -> Iterator[StyledLine]:
    over = f", over {stage['domain']}" if stage["domain"] else ""
    yield f"stage {stage['name']}{over}", "bold"
    yield from ((f"  {line}", "") for line in stage["computes"])
    reads = ", ".join(stage["reads"]) or "nothing"
    yield f"  reads {reads}; writes {', '.join(stage['writes'])}", ""
    if stage["apart"]:
        yield f"  not fused with {before}: {stage['apart']}", ""
    if any(not schedule["covers"] for schedule in stage["schedules"]):
        yield f"  at least {stage['bytes']} bytes, {stage['operations']} operations", ""
    if stage["within"]:
        otherwise = "; else:" * bool(stage["schedules"])
        yield f"  runs with {' or '.join(stage['within'])}{otherwise}", ""
    for number, schedule in enumerate(stage["schedules"], 1):
        when = f" when {schedule['when']}" if schedule["when"] else ""
        with_ = f", with {', '.join(schedule['covers'])}" * bool(schedule["covers"])
        yield f"  {number}. {schedule['name']}{with_}{when}  ({schedule['reason']})", ""
        if schedule["covers"]:
            yield f"     {_together(schedule)}", ""
        for variant in schedule["variants"]:
            when = _plain(variant["when"]) or "always"
            yield f"     {variant['name'] or 'all sizes'}: {when}", ""
            for shader in variant["shaders"]:
                size, memory = shader["workgroup_size"], shader["workgroup_bytes"]
                yield f"       {shader['file']}", ""
                groups = _plain(shader["groups"])
                needs = ", in subgroups" * shader["subgroups"]
                yield f"       {groups} workgroups of {size}, {memory} B{needs}", "dim"
    for name, reason in stage["others"].items():
        yield f"  not {name}: {reason}", "dim"


def _together(schedule: ScheduleData) -> str:
    """Say what a schedule costs that runs several stages."""
    cost = f"{schedule['bytes']} bytes, {schedule['operations']} operations"
    kept = f"; {', '.join(schedule['keeps'])} not stored" * bool(schedule["keeps"])
    return f"together at least {cost}{kept}"


def _plain(host_code: str) -> str:
    """Return an expression over the dims `d` with the dims by name."""
    return re.sub(r'\bd\["(\w+)"\]', r"\1", host_code)


def _wgsl_text(schedule: ScheduleData) -> Iterator[StyledLine]:
    for variant in schedule["variants"]:
        for shader in variant["shaders"]:
            yield "", ""
            yield f"---- {shader['file']}", "bold"
            yield from ((line, "") for line in shader["wgsl"].splitlines())


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
