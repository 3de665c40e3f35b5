"""The LALR parser's loop, over the tables that lark generates.

lark's own loop makes a tree first, with a node and a place for each rule, even one with a
single part: most of the time of a build went there.  This loop calls `make` with the parts
of a rule and their place as soon as the rule is complete, and makes nothing of a rule with a
single part.  Which parts a rule keeps follows lark; see its documentation on 'shaping the
tree'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast, final

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters
from lark.lexer import LexerThread
from lark.parsers.lalr_analysis import Shift
from lark.utils import TextSlice

from kerngen.syntax.wording import CONTEXTUAL

END: Final = "$END"
"""The kind of the token at the end of a text, lark's name for it."""

Make: TypeAlias = Callable[[str, list[Any], int, int], object]
"""Makes the node of a rule, from its name, its parts, and its start and end offset."""

_NOWHERE: Final = -1
"""The offset of an empty rule, which has no place in the text."""


@final
@dataclass(frozen=True, slots=True)
class Stack:
    """The state and value stacks of a parser.

    After `y[i] = x[i] +`, the values are a target, `=`, an expression and `+`: of a complete
    rule the node that was made, of an unfinished one its tokens.  There is one more state
    than values.  `begins` and `ends` are the values' offsets; `tokens` are all tokens that
    were read, in order.
    """

    states: list[int]
    values: list[Any]
    begins: list[int]
    ends: list[int]
    tokens: list[Token]

    def cut(self, size: int) -> None:
        """Drop all values but the first `size`."""
        del self.states[size + 1 :], self.values[size:]
        del self.begins[size:], self.ends[size:]


class UnexpectedError(Exception):
    """Raised for a token that the grammar does not allow, with the parser's stack.

    The token is None at the end of the text, and a number where no token begins: the
    offset of the character.
    """

    def __init__(
        self, token: Token | int | None, accepts: frozenset[str], stack: Stack
    ) -> None:
        super().__init__(token)
        self.token = token
        self.accepts = accepts
        self.stack = stack


@final
@dataclass(frozen=True, slots=True)
class _Rule:
    """The action of a grammar rule: which of its symbols' values become its parts.

    - `kept`: for each value that is kept its place, whether its own parts replace it, and
      how many optional parts before it are absent: each becomes None
    - `left_out`: how many optional parts are absent at the end
    - `passes_one`, `passes_all`: an only value is passed on as it is; all values are
    - `is_transparent`: the rule has one symbol, and passes its value on
    """

    name: str
    origin: str
    size: int
    kept: tuple[tuple[int, bool, int], ...]
    left_out: int
    passes_one: bool
    passes_all: bool
    is_transparent: bool

    def parts(self, values: list[Any]) -> list[Any]:
        """Return the values of its symbols that the rule keeps."""
        found: list[Any] = []
        for place, is_inlined, left_out in self.kept:
            if left_out:
                found += [None] * left_out
            if not is_inlined:
                found.append(values[place])
            elif found:
                found += values[place]
            else:
                # A list grows in place: copied for each element, it would take its square.
                found = values[place]
        return found + [None] * self.left_out if self.left_out else found


@final
class Tables:
    """The tables of an LALR grammar: for each state, its action for each token."""

    def __init__(self, lark: Lark) -> None:
        """Read the parse table out of lark, which has no public name for it."""
        front: Any = lark.parser
        table = front.parser._parse_table  # noqa: SLF001
        placeholders = bool(lark.options.maybe_placeholders)
        rules: dict[object, _Rule] = {}

        def step(action: object, to: Any) -> int | _Rule:
            if action is Shift:
                return cast("int", to)
            if to not in rules:
                rules[to] = _rule(to, placeholders=placeholders)
            return rules[to]

        self._lexer = front.lexer
        self._steps: dict[int, dict[str, int | _Rule]] = {
            state: {str(name): step(*found) for name, found in actions.items()}
            for state, actions in table.states.items()
        }
        self._after: dict[int, dict[str, int]] = {
            state: {name: to for name, to in steps.items() if isinstance(to, int)}
            for state, steps in self._steps.items()
        }
        (self._start,) = table.start_states.values()
        (self._end,) = table.end_states.values()
        # Mistakes of one kind leave the parser in the same states.
        self._accepted = lru_cache(maxsize=512)(self._find_accepted)

    def tokens(self, text: str, offset: int = 0) -> Iterator[Token]:
        """Yield the tokens of a text from an offset on; comments are left out."""
        rest = TextSlice(text, offset, len(text))
        thread: Any = LexerThread
        lexed = thread.from_text(self._lexer, rest).lex(None)
        return cast("Iterator[Token]", lexed)

    def begin(self) -> Stack:
        """Return the stack of a new parser."""
        return Stack([self._start], [], [], [], [])

    def parse(
        self, tokens: Iterator[Token], make: Make, stack: Stack | None = None
    ) -> object:
        """Parse tokens, and return the node that `make` made of the whole.

        With `stack`, parsing goes on from the state in which it stopped at an error.

        Raises `UnexpectedError` at the first token that can't be there.
        """
        stack = stack or self.begin()
        steps, after, end = self._steps, self._after, self._end
        states, values, begins = stack.states, stack.values, stack.begins
        ends, read = stack.ends, stack.tokens
        while True:
            try:
                token = next(tokens, None)
            except UnexpectedCharacters as error:
                at = cast("int", error.pos_in_stream)
                raise UnexpectedError(at, frozenset(), stack) from error
            if token is not None and token.type in CONTEXTUAL:
                token = _in_context(token, steps[states[-1]])
            kind = END if token is None else token.type
            # Reduce all rules that the token ends, then shift it.
            while not isinstance(step := steps[states[-1]].get(kind), int):
                if step is None:
                    raise UnexpectedError(token, self._accepted(tuple(states)), stack)
                if step.is_transparent:
                    states.pop()
                else:
                    self._reduce(step, stack, make)
                states.append(after[states[-1]][step.origin])
                if token is None and states[-1] == end:
                    return values[-1]
            assert token is not None, "the end is never passed"
            assert token.start_pos is not None
            assert token.end_pos is not None
            states.append(step)
            values.append(token)
            begins.append(token.start_pos)
            ends.append(token.end_pos)
            read.append(token)

    def shifts(self, state: int, kind: str) -> bool:
        """Whether a state takes a kind of token without completing a rule first."""
        return isinstance(self._steps[state].get(kind), int)

    def takes(self, state: int, kind: str) -> bool:
        """Whether a state has any action for a kind of token."""
        return kind in self._steps[state]

    def complete(self, stack: Stack, make: Make) -> None:
        """Reduce a finished statement or item on top of the stack.

        It is complete if a `host`, or between items a `kernel`, may follow.
        """
        accepted = self._accepted(tuple(stack.states))
        kind = next((kind for kind in ("HOST", "KERNEL") if kind in accepted), None)
        while kind and not isinstance(step := self._steps[stack.states[-1]][kind], int):
            if step.is_transparent:
                stack.states.pop()
            else:
                self._reduce(step, stack, make)
            stack.states.append(self._after[stack.states[-1]][step.origin])

    def _reduce(self, rule: _Rule, stack: Stack, make: Make) -> None:
        """Replace the parts of a complete rule on the stack by the node that it becomes."""
        values, begins, ends = stack.values, stack.begins, stack.ends
        parts: list[Any] = []
        begin = end = _NOWHERE
        if rule.size:
            first = len(values) - rule.size
            parts = values[first:]
            begin, end = begins[first], ends[-1]
            if _NOWHERE in (begin, end):  # a part at an edge is empty
                known = [at for at in begins[first:] if at != _NOWHERE] or [_NOWHERE]
                begin = known[0]
                known = [at for at in ends[first:] if at != _NOWHERE] or [_NOWHERE]
                end = known[-1]
            stack.cut(first)
        parts = rule.parts(parts)
        if rule.passes_all:
            values.append(parts)
        elif rule.passes_one and len(parts) == 1:
            values.append(parts[0])
        else:
            values.append(make(rule.name, parts, begin, end))
        begins.append(begin)
        ends.append(end)

    def _find_accepted(self, states: tuple[int, ...]) -> frozenset[str]:
        """Return the kinds of tokens that could be next."""
        kinds = (kind for kind in self._steps[states[-1]] if kind.isupper())
        return frozenset(kind for kind in kinds if self._accepts(list(states), kind))

    def _accepts(self, states: list[int], kind: str) -> bool:
        """Whether a token could be next: the reductions before it are run on the states."""
        while not isinstance(step := self._steps[states[-1]].get(kind), int):
            if step is None:
                return False
            del states[len(states) - step.size :]
            states.append(self._after[states[-1]][step.origin])
            if kind == END and states[-1] == self._end:
                return True
        return True


def _in_context(token: Token, steps: Mapping[str, int | _Rule]) -> Token:
    """Return a contextual word such as `gradient` as a keyword if allowed, else as a name."""
    return token if token.type in steps else Token.new_borrow_pos("NAME", token, token)


def _rule(rule: Any, *, placeholders: bool) -> _Rule:
    """Return a rule of lark's with its options read as lark's own tree builder reads them."""
    options = rule.options
    # For each symbol, how many optional parts before it were left out.
    before = [0] * (len(rule.expansion) + 1)
    if placeholders and options.empty_indices:
        # True for each part that was left out, False for each symbol that was not.
        marks = "".join("1" if empty else "0" for empty in options.empty_indices)
        before = [len(ones) for ones in marks.split("0")]
    kept: list[tuple[int, bool, int]] = []
    left_out = 0
    for place, symbol in enumerate(rule.expansion):
        left_out += before[place]
        if options.keep_all_tokens or not (symbol.is_term and symbol.filter_out):
            inlined = not symbol.is_term and symbol.name.startswith("_")
            kept.append((place, inlined, left_out))
            left_out = 0
    passes_one = bool(options.expand1 and not rule.alias)
    return _Rule(
        name=str(rule.alias or options.template_source or rule.origin.name),
        origin=str(rule.origin.name),  # lark's own kind of text compares slowly
        size=len(rule.expansion),
        kept=tuple(kept),
        left_out=left_out + before[-1],
        passes_one=passes_one,
        passes_all=rule.origin.name.startswith("_"),
        is_transparent=passes_one
        and len(rule.expansion) == 1
        and kept == [(0, False, 0)],
    )
