"""The report of `kerngen show`: a kernel's stages, plan and shaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias, TypedDict

from kerngen.compiler import Compiler
from kerngen.emit.kernel_plan import plan_kernel
from kerngen.emit.python_names import KernelNames, kernel_names
from kerngen.gradient import kernel_text
from kerngen.ir.analysis.reads import tensors_read
from kerngen.ir.nodes import Kernel, Role
from kerngen.ir.staging.stages import StagedKernel, Write, computed_by
from kerngen.layout.struct import uniform_layout
from kerngen.layout.types import StructLayout
from kerngen.plan.write import lines_of_kernel
from kerngen.schedule.costs import bytes_moved, operations, show_polynomial
from kerngen.schedule.program import (
    KernelProgram,
    ScheduledStage,
    StageProgram,
)

StyledLine: TypeAlias = tuple[str, str]
"""A line of text and its style, in rich's words."""


class UniformFieldData(TypedDict):
    """A field of the uniform struct, as data."""

    name: str
    type: str
    offset: int
    size: int


class UniformData(TypedDict):
    """The uniform struct, as data."""

    name: str
    size: int
    fields: list[UniformFieldData]


class ScheduleData(TypedDict):
    """A schedule of a stage, as data.

    - `covers`: the stages after it that run in the same dispatches
    - `keeps`: the tensors that these then pass on without storing them
    - `bytes`, `operations`: the least that all of them cost, as polynomials of the dims
    """

    name: str
    strategy: str
    reason: str
    covers: list[str]
    keeps: list[str]
    bytes: str
    operations: str


class StageData(TypedDict):
    """A stage with its schedules in order of preference, as data.

    - `computes`: the statements that it fuses
    - `bytes`, `operations`: the least that it costs if it runs alone, as polynomials of the
      dims
    - `apart`: why it is not fused with the stage before it
    - `within`: the earlier stages whose schedules may run it, too; a stage without schedules
      of its own always runs with one of these
    - `others`: for each other strategy, why it does not run the stage
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


class ShaderData(TypedDict):
    """A shader file, as data."""

    file: str
    wgsl: str


class KernelData(TypedDict):
    """The data that `kerngen show KERNEL --json` prints.

    - `python`: the kernel's module and function in the output's package
    - `inlined`: the lets that are computed where they are used
    - `plan`: the lines of the plan file that are about the kernel; `shaders`: the files that
      these name
    """

    name: str
    python: str
    path: str
    line: int
    doc: str
    source: str
    uniform: UniformData
    inlined: list[str]
    stages: list[StageData]
    plan: list[str]
    shaders: list[ShaderData]


def _source(kernel: Kernel) -> str:
    """Return a kernel's text; of a gradient, the equations that were derived, too."""
    text = kernel.span.text
    return text if "{" in text else f"{text}\n\n{kernel_text(kernel).rstrip()}"


def as_data(
    program: KernelProgram, names: KernelNames, plan: list[str], module: str
) -> KernelData:
    """Return the report of a kernel as JSON data.

    `names` are its names in the Python module `module`, and `plan` its lines of the plan file.
    """
    kernel = program.staged.kernel
    return {
        "name": kernel.name,
        "python": f"{module}.{names.function}",
        "path": kernel.span.source.path,
        "line": kernel.span.line,
        "doc": kernel.doc,
        "source": _source(kernel),
        "uniform": _uniform(uniform_layout(kernel)),
        "inlined": _inlined(program.staged),
        "stages": [*_stages(program)],
        "plan": plan,
        "shaders": [*_shaders(program)],
    }


def kernel_data(
    compiler: Compiler, file: str, kernel: str, python_module: str
) -> KernelData:
    """Compile a file, and return the report of one of its kernels."""
    programs = compiler.programs(file)
    program = next(p for p in programs if p.staged.kernel.name == kernel)
    names = kernel_names(compiler.module(file))
    plans = [plan_kernel(each, names).plan for each in programs]
    plan = lines_of_kernel(plans, kernel)
    return as_data(program, names[kernel], plan, python_module)


def stages_of(compiler: Compiler, file: str, kernel: str) -> list[StageData]:
    """Return the stages in the report of a kernel."""
    return [*_stages(compiler.program(file, kernel))]


def _inlined(staged: StagedKernel) -> list[str]:
    """Name the lets that no stage computes as values of their own."""
    computed = {computed_by(step) for stage in staged.stages for step in stage.steps}
    lets = (s.target for s in staged.kernel.body if s.target.role is Role.LET)
    return [let.name for let in lets if let.name not in computed]


def _uniform(layout: StructLayout) -> UniformData:
    fields: list[UniformFieldData] = [
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
    """Yield the names of the earlier stages with a schedule that covers stage `number`."""
    for first, stage in enumerate(stages[:number]):
        if any(first + len(s.stages) > number for s in stage.schedules):
            yield stage.name


def _schedule(
    schedule: ScheduledStage, program: KernelProgram, number: int
) -> ScheduleData:
    """Return the data of a schedule of stage `number`, with the costs of all it covers."""
    stages = program.staged.stages[number : number + len(schedule.stages)]
    written = {s.tensor for x in stages for s in x.steps if isinstance(s, Write)}
    stored = schedule.bound
    kept = [
        t for t in program.staged.temporaries if t in written and t.name not in stored
    ]
    return {
        "name": schedule.label,
        "strategy": schedule.strategy,
        "reason": schedule.reason,
        "covers": [*schedule.stages[1:]],
        "keeps": [tensor.name for tensor in kept],
        "bytes": show_polynomial(bytes_moved(stages, kept)),
        "operations": show_polynomial(operations(stages, program.functions)),
    }


def _shaders(program: KernelProgram) -> Iterator[ShaderData]:
    """Yield the shaders in the order of the plan, each file once."""
    for file in program.files:
        yield {"file": f"{file.name}.wgsl", "wgsl": file.text}


def as_text(kernel: KernelData, *, wgsl: bool) -> Iterator[StyledLine]:
    """Yield the styled lines of the report that `kerngen show` prints."""
    yield f"{kernel['name']}  {kernel['path']}:{kernel['line']}", "bold"
    if kernel["python"] != f"{PurePosixPath(kernel['path']).stem}.{kernel['name']}":
        yield f"in Python: {kernel['python']}", ""
    yield "", ""
    yield from ((f"  {line}".rstrip(), "") for line in kernel["source"].splitlines())
    yield "", ""
    yield from _uniform_text(kernel["uniform"])
    if kernel["inlined"]:
        yield f"inlined: {', '.join(kernel['inlined'])}", ""
    before = ""
    for stage in kernel["stages"]:
        yield "", ""
        yield from _stage_text(stage, before)
        before = stage["name"]
    yield "", ""
    yield "plan", "bold"
    yield from ((line, "") for line in kernel["plan"])
    for shader in kernel["shaders"] if wgsl else ():
        yield from _wgsl_text(shader)


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
        with_ = f", with {', '.join(schedule['covers'])}" * bool(schedule["covers"])
        yield f"  {number}. {schedule['name']}{with_}  ({schedule['reason']})", ""
        if schedule["covers"]:
            yield f"     {_together(schedule)}", ""
    for name, reason in stage["others"].items():
        yield f"  not {name}: {reason}", "dim"


def _together(schedule: ScheduleData) -> str:
    """Return the costs of a schedule that runs several stages."""
    cost = f"{schedule['bytes']} bytes, {schedule['operations']} operations"
    kept = f"; {', '.join(schedule['keeps'])} not stored" * bool(schedule["keeps"])
    return f"together at least {cost}{kept}"


def _wgsl_text(shader: ShaderData) -> Iterator[StyledLine]:
    yield "", ""
    yield f"---- {shader['file']}", "bold"
    yield from ((line, "") for line in shader["wgsl"].splitlines())


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
