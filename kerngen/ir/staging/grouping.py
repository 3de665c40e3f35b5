"""Grouping: join neighbouring statements that can run in one invocation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.reads import is_own, loads, places_of
from kerngen.ir.staging.recurring import fits_loop, place_read
from kerngen.ir.store import StoreAt
from kerngen.ir.walk import map_children, map_path, walk

MAX_TENSORS: Final = 8
"""The storage buffers that a shader can bind on every WebGPU adapter."""

_TOO_MANY: Final = f"together they bind more than {MAX_TENSORS} tensors"


@final
@dataclass(frozen=True)
class StatementGroup:
    """Statements that run in one invocation, over the indices of the first.

    `stored` are the lets that later groups read, so that they are in memory; `apart` is the
    reason why the first of these statements could not join the group before.
    """

    members: tuple[ir.Statement, ...]
    stored: frozenset[ir.Tensor]
    apart: str


def group(body: Sequence[ir.Statement]) -> Iterator[StatementGroup]:
    """Yield groups of neighbouring statements that exchange only values of the same element.

    Before:  m[i] = ...;    param[i] -= lr * m[i];
    After:   one group, over i

    If a group stores a tensor at a position, it has no other use of that tensor, as the
    element is another invocation's.  A let that its own group alone reads is in a register,
    and binds no tensor.  A group that would bind too many tensors ends earlier: if possible
    where no let would have to be stored.
    """
    grouping = _Grouping(_candidates(body))
    start, apart = 0, ""
    while start < len(body):
        end, reason = grouping.end(start)
        joined = grouping.joined(start, end)
        stored = frozenset(t for t, last in joined.lasts.items() if last >= end)
        yield StatementGroup(tuple(joined.members), stored, apart)
        start, apart = end, reason


@final
@dataclass(frozen=True, slots=True)
class _Life:
    """How long a let is needed.

    - `last`: the number of the last statement that reads it
    - `is_stored`: whether a statement reads it that can't be in its group
    """

    last: int
    is_stored: bool


@final
@dataclass(frozen=True, slots=True)
class _Reads:
    """The reads of a statement, found by one walk: one for each question took a quarter of a check.

    - `tensors`: all tensors that it reads, but for the target of a let that reads itself
    - `elsewhere`: those that are read at other elements than the statement's own
    - `reduces`: whether the statement holds a reduction
    """

    tensors: frozenset[ir.Tensor]
    elsewhere: frozenset[ir.Tensor]
    reduces: bool


def _reads(statement: ir.Statement) -> _Reads:
    tensors, elsewhere, reduces = set[ir.Tensor](), set[ir.Tensor](), False
    for node in walk(statement.value):
        match node:
            case ir.Load(tensor):
                tensors.add(tensor)
                if not is_own(node, statement):
                    elsewhere.add(tensor)
            case ir.Reduce():
                reduces = True
            case _:
                pass
    if statement.along:
        tensors.discard(statement.target)
    return _Reads(frozenset(tensors), frozenset(elsewhere), reduces)


@final
@dataclass(frozen=True, slots=True)
class _Candidate:
    """A statement that may join a group.

    - `number`: which of the kernel's statements it is
    - `life`: that of the let which it computes, else `None`
    """

    number: int
    statement: ir.Statement
    reads: _Reads
    life: _Life | None


def _candidates(body: Sequence[ir.Statement]) -> tuple[_Candidate, ...]:
    reads = [_reads(statement) for statement in body]
    lives = _lives(body, reads)
    numbered = enumerate(zip(body, reads, strict=True))
    return tuple(_Candidate(n, each, own, lives.get(n)) for n, (each, own) in numbered)


def _lives(body: Sequence[ir.Statement], reads: Sequence[_Reads]) -> dict[int, _Life]:
    """Return the life of the let that each statement computes, by the statement's number.

    Inlining repeats lets: a statement reads the last one before it.
    """
    lives: dict[int, _Life] = {}
    computed: dict[ir.Tensor, int] = {}
    # The first statement of the run that each is in: no group has statements of two runs.
    runs: list[int] = []
    for place, (statement, own) in enumerate(zip(body, reads, strict=True)):
        breaks = (
            place == 0
            or own.reduces
            or _extents(statement) != _extents(body[place - 1])
        )
        runs.append(place if breaks else runs[-1])
        for tensor in own.tensors:
            if tensor.role is ir.Role.LET:
                origin = computed[tensor]
                apart = tensor in own.elsewhere or runs[origin] != runs[place]
                apart &= tensor not in _left_by(body[origin], statement)
                apart |= lives[origin].is_stored
                lives[origin] = _Life(place, apart)
        if statement.target.role is ir.Role.LET:
            computed[statement.target] = place
            lives[place] = _Life(place, is_stored=False)
    return lives


def _left_by(loop: ir.Statement, statement: ir.Statement) -> set[ir.Tensor]:
    """Return the tensors of a loop that a statement reads at one step each, and at no other.

    For `let x[i, s < 9] = ...;    y[i] = x[i, 8];` that is `x`.
    """
    read: dict[ir.Tensor, bool] = {}
    for load in loads(statement.value):
        if load.tensor.extents == loop.target.extents:
            found = place_read(load, loop, statement.indices) is not None
            read[load.tensor] = read.get(load.tensor, True) and found
    return {tensor for tensor, found in read.items() if found}


def _extents(statement: ir.Statement) -> list[ir.Extent]:
    return [index.extent for index in statement.indices]


@final
@dataclass(frozen=True)
class _Grouping:
    """The statements of a kernel, in their order."""

    body: tuple[_Candidate, ...]

    def joined(self, start: int, end: int) -> _Joined:
        """Return some statements as one group."""
        joined = _Joined()
        for candidate in self.body[start:end]:
            joined.add(candidate)
        return joined

    def end(self, start: int) -> tuple[int, str]:
        """Return where the group ends that begins at `start`, and the reason.

        `fitting` is the last end at which the tensors can be bound, and `uncrossed` the last
        such end at which no let is waiting to be read.
        """
        joined = _Joined()
        fitting, uncrossed, place = start + 1, start, start
        while place < len(self.body) and len(joined.bound) <= MAX_TENSORS:
            # A statement that does not fit ends the group, unless that would bind too many.
            if reason := joined.refusal(self.body[place]):
                if fitting == place:
                    return self._without_last_lets(start, place), reason
                break
            joined.add(self.body[place])
            place += 1
            if len(joined.bound) + len(joined.waiting) <= MAX_TENSORS:
                fitting = place
                uncrossed = uncrossed if joined.waiting else place
        if fitting == place == len(self.body):
            return place, ""
        return uncrossed if uncrossed > start else fitting, _TOO_MANY

    def _without_last_lets(self, start: int, end: int) -> int:
        """Return an earlier end, so that lets for the next group's first statement are in it.

        Else each would be an array in memory, written and read.
        """
        first = end
        while first > start + 1 and self._may_wait(first - 1):
            first -= 1
        joins = not self.joined(first, end).refusal(self.body[end])
        return first if joins else end

    def _may_wait(self, place: int) -> bool:
        life = self.body[place].life
        return life is not None and not life.is_stored


@final
@dataclass(frozen=True)
class _Joined:
    """The statements of a group so far, and the tensors that they use.

    - `loops`: the members that read themselves
    - `reducing`: those that hold reductions
    - `bound`: the tensors that are bound, wherever the group ends
    - `lasts`: the number of the last statement that reads each of the group's lets
    - `waiting`: the lets that are read later, and are bound if the group ends here
    - `written`, `touched`: the tensors that are written, and that are read or written
    - `stored`: those that are written at a position, with the position
    - `elsewhere`: those that are read at other elements than the statement's own
    """

    members: list[ir.Statement] = field(default_factory=list[ir.Statement])
    loops: list[ir.Statement] = field(default_factory=list[ir.Statement])
    reducing: list[ir.Statement] = field(default_factory=list[ir.Statement])
    written: set[ir.Tensor] = field(default_factory=set[ir.Tensor])
    touched: set[ir.Tensor] = field(default_factory=set[ir.Tensor])
    stored: dict[ir.Tensor, tuple[ir.Subscript, ...]] = field(
        default_factory=dict[ir.Tensor, tuple[ir.Subscript, ...]]
    )
    elsewhere: set[ir.Tensor] = field(default_factory=set[ir.Tensor])
    bound: set[ir.Tensor] = field(default_factory=set[ir.Tensor])
    lasts: dict[ir.Tensor, int] = field(default_factory=dict[ir.Tensor, int])
    waiting: set[ir.Tensor] = field(default_factory=set[ir.Tensor])

    def refusal(self, candidate: _Candidate) -> str:
        """Return why a statement can't run in the same invocation, after the members."""
        statement, reads = candidate.statement, candidate.reads
        if not self.members or self._computes(statement):
            return ""
        # Behind a loop, statements range over the other axes, and read what it leaves.
        left = self._left_by_loop(statement)
        if _extents(statement) != _extents(self.members[-1]) and not left:
            return "it ranges over other axes"
        if reads.reduces:
            return "it holds a reduction"
        if reason := self._unlike_in_words(statement):
            return reason
        if met := sorted(t.name for t in self._stored_beside(candidate)):
            return f"it meets a store at a position in '{met[0]}'"
        if reason := self._disorder(candidate):
            return reason
        met = sorted(t.name for t in self.written & reads.elsewhere - left)
        if met:
            return f"it reads other elements of '{met[0]}', which is written there"
        if statement.target in self.elsewhere:
            name = statement.target.name
            return f"it writes '{name}', of which other elements are read there"
        return ""

    def _unlike_in_words(self, statement: ir.Statement) -> str:
        """Return why an invocation can't write words of narrow integers, too, or ""."""
        bits = {x.narrow.bits for x in {*self.written, statement.target} if x.narrow}
        if len(bits) > 1:
            return "it packs another number of elements into a word"
        if bits and (self.reducing or self._loop):
            return "it packs several elements into a word"
        return ""

    @property
    def _loop(self) -> ir.Statement | None:
        """The first let among the members that reads itself, if there is one."""
        return self.loops[0] if self.loops else None

    def _is_past(self, loop: ir.Statement) -> bool:
        """Whether the members end with statements that run after the loop."""
        return len(self.members[-1].indices) < len(loop.indices)

    def _left_by_loop(self, statement: ir.Statement) -> set[ir.Tensor]:
        """Return the tensors of the members' loop that a statement behind it reads."""
        loop = self._loop
        if loop is None or loop.along is None or not fits_loop(loop):
            return set()
        extents = _extents(loop)
        del extents[loop.along.axis]
        fits = _extents(statement) == extents and not statement.along
        return _left_by(loop, statement) & self.written if fits else set()

    def _disorder(self, candidate: _Candidate) -> str:
        """Return why the order of a let that reads itself excludes a statement, or ""."""
        statement = candidate.statement
        loop, along = self._loop, statement.along
        if along is None and loop is None:
            return ""
        if not all(
            fits_loop(each) for each in (loop, statement) if each and each.along
        ):
            return "each step of one is a dispatch of its own"
        # A statement without an order joins a loop only if it is a let, or reads the loop.
        if along is None:
            is_let = statement.target.role is ir.Role.LET
            follows = is_let or self.written & candidate.reads.tensors
            return "" if follows else "its elements need no order"
        # A loop joins members without an order only if they are lets without reductions.
        if loop is None:
            if self.reducing:
                return "its elements are computed in an order, and reductions need none"
            are_lets = all(m.target.role is ir.Role.LET for m in self.members)
            return "" if are_lets else "its elements are computed in an order"
        # Two loops need the same axis and direction.
        same = (loop.along.axis, loop.along.descending) if loop.along else None
        is_along = same == (along.axis, along.descending) and not self._is_past(loop)
        return "" if is_along else "its elements are computed in another order"

    def add(self, candidate: _Candidate) -> None:
        """Add a statement to the group, over the indices of the first one.

        A let that the group computes already, for an earlier use, is not repeated.
        """
        statement, life = candidate.statement, candidate.life
        target, repeats = statement.target, self._computes(statement)
        read = candidate.reads.tensors
        # Reads of the group's own lets bind nothing; a let with readers elsewhere is bound.
        self.bound.update(read - self.lasts.keys())
        if life is None or life.is_stored:
            self.bound.add(target)
        if life is not None:
            self.lasts[target] = life.last
        # A let is waiting until its last reader has joined.
        for tensor in read & self.lasts.keys() | {target}:
            needed = (
                self.lasts.get(tensor, 0) > candidate.number
                and tensor not in self.bound
            )
            (self.waiting.add if needed else self.waiting.discard)(tensor)
        if repeats:
            return
        member = self._as_member(statement)
        self.members.append(member)
        if member.along:
            self.loops.append(member)
        if candidate.reads.reduces:
            self.reducing.append(member)
        self.written.add(target)
        self.touched.update((target, *read))
        if isinstance(statement.value, StoreAt):
            self.stored[target] = places_of(self.members[-1])
        self.elsewhere.update(candidate.reads.elsewhere)

    def _as_member(self, statement: ir.Statement) -> ir.Statement:
        """Return a statement over the indices of the first member, as far as it has them."""
        first = self.members[0] if self.members else statement
        indices, loop = list(first.indices), self._loop
        if loop and loop.along and len(statement.indices) < len(indices):
            del indices[loop.along.axis]
        return _over(statement, tuple(indices))

    def _stored_beside(self, candidate: _Candidate) -> set[ir.Tensor]:
        """Return the tensors that would be stored at a position and used at another one."""
        statement, target = candidate.statement, candidate.statement.target
        met = {target, *candidate.reads.tensors} & self.stored.keys()
        if not isinstance(statement.value, StoreAt):
            return met
        places = places_of(self._as_member(statement))
        if self.stored.get(target) == places:
            return met - {target}
        return met | ({target} & self.touched)

    def _computes(self, statement: ir.Statement) -> bool:
        return statement.target.role is ir.Role.LET and statement.target in self.written


def _over(statement: ir.Statement, indices: tuple[ir.Index, ...]) -> ir.Statement:
    """Return a statement over other indices; its value has no reduction that could clash."""
    renamed = dict(zip(statement.indices, indices, strict=True))

    def rename(expr: ir.Expr) -> ir.Expr:
        if isinstance(expr, ir.IndexValue):
            return ir.IndexValue(renamed.get(expr.index, expr.index))
        return map_children(expr, rename)

    if statement.indices == indices:
        return statement
    value, path = rename(statement.value), map_path(statement.path, rename)
    return replace(statement, indices=indices, value=value, path=path)
