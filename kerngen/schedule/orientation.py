"""The direction in which a stage reads memory: along its rows or its columns."""

from __future__ import annotations

from kerngen.ir.analysis.reads import loads
from kerngen.ir.nodes import Index
from kerngen.schedule.lowering.addresses import is_contiguous
from kerngen.schedule.lowering.cooperation import reduction_of
from kerngen.schedule.task import Task


def is_columnwise(task: Task) -> bool:
    """Whether more reads are contiguous along the domain than along the reduction.

    `sum[i] x[i, j]` is columnwise: neighbours along j, the domain's last index, are neighbours
    in memory.  Reads count by the ranks of their tensors.
    """
    if not task.domain:
        return False
    along_reduction = _weight(task, reduction_of(task).indices[-1])
    return _weight(task, task.domain[-1]) > along_reduction


def is_contiguous_at_all(task: Task) -> bool:
    """Whether any read is contiguous along the reduction or along the domain."""
    last = (reduction_of(task).indices[-1], *task.domain[-1:])
    return any(_weight(task, index) for index in last)


def _weight(task: Task, index: Index) -> int:
    """Add up the ranks of the tensors that the reduction reads in runs along `index`."""
    body = reduction_of(task).body
    return sum(x.tensor.rank for x in loads(body) if is_contiguous(x, index))
