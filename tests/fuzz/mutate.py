"""Making inputs: programs spliced, spoilt, derived from the grammar, or just bytes.

All choices come from one `Random`: the same seed makes the same input.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, TypeAlias

from tests.check.programs import TOKEN
from tests.programs.programs import CHOICES, program_of

from .corpus import BYTES, CHARACTERS, NAMES, NUMBERS, PIECES, PROGRAMS, WORDS
from .derive import derived

LONGEST: Final = 64 * 1024
"""Bytes of an input."""

Tokens: TypeAlias = list[str]
_Step: TypeAlias = Callable[[Tokens, Random], None]

_BRACKETS: Final = (("(", ")"), ("[", "]"), ("{", "}"), ("exp(", ")"), ("x[", "]"))
_PREFIXES: Final = (
    "-",
    "~",
    "not ",
    "sum[j] ",
    "sum[j when j < i] ",
    "if x { y } else ",
    "/// a\n",
    "x.",
)
_JOINTS: Final = (" + x", " * x[i]", " and x", ", x", "[i]", ".x", " / 2", "; x = 1")


def _place(tokens: Tokens, random: Random) -> int:
    return random.randrange(len(tokens) + 1)


def _run(tokens: Tokens, random: Random) -> slice:
    """Choose some tokens that follow each other: few, as a rule."""
    start = _place(tokens, random)
    return slice(start, start + int(random.expovariate(0.2)) + 1)


def _splice(tokens: Tokens, random: Random) -> None:
    """Put a run of another program in the place of one."""
    other = list(random.choice(PIECES))
    tokens[_run(tokens, random)] = other[_run(other, random)]


def _drop(tokens: Tokens, random: Random) -> None:
    del tokens[_run(tokens, random)]


def _repeat(tokens: Tokens, random: Random) -> None:
    """Repeat a run a few times, or very often."""
    run = _run(tokens, random)
    tokens[run] = tokens[run] * random.choice((2, 2, 3, 8, 100))


def _move(tokens: Tokens, random: Random) -> None:
    run = _run(tokens, random)
    moved = tokens[run]
    del tokens[run]
    at = _place(tokens, random)
    tokens[at:at] = moved


def _insert(tokens: Tokens, random: Random) -> None:
    words = random.choice((WORDS, WORDS, NAMES, NUMBERS, CHARACTERS))
    tokens.insert(_place(tokens, random), random.choice(words))


def _replace(tokens: Tokens, random: Random) -> None:
    """Exchange a word or number for another."""
    if tokens:
        at = random.randrange(len(tokens))
        words = NUMBERS if tokens[at][:1].isdigit() else random.choice((NAMES, WORDS))
        tokens[at] = random.choice(words)


def _rename(tokens: Tokens, random: Random) -> None:
    """Exchange a name for another wherever it stands."""
    names = sorted({token for token in tokens if token.isidentifier()})
    if names:
        old, new = random.choice(names), random.choice((*NAMES, *names))
        tokens[:] = [new if token == old else token for token in tokens]


def _nest(tokens: Tokens, random: Random) -> None:
    """Put a run into many brackets, behind many prefixes, or in a long chain."""
    run, times = _run(tokens, random), random.choice((1, 2, 50, 130, 1000))
    opening, closing = random.choice(_BRACKETS)
    front, back = random.choice(
        (
            (opening * times, closing * times),
            (random.choice(_PREFIXES) * times, ""),
            ("", random.choice(_JOINTS) * times),
        )
    )
    tokens[run] = [front, *tokens[run], back]


_STEPS: Final[tuple[_Step, ...]] = (
    _splice,
    _splice,
    _drop,
    _repeat,
    _move,
    _insert,
    _replace,
    _replace,
    _rename,
    _rename,
    _nest,
)


def spoilt(text: str, random: Random) -> str:
    """Return a program after some changes of its tokens."""
    tokens: Tokens = TOKEN.findall(text)
    for _ in range(random.choice((1, 1, 2, 3, 5, 12))):
        random.choice(_STEPS)(tokens, random)
    return "".join(tokens)


def mangled(data: bytes, random: Random) -> bytes:
    """Return bytes after some changes of bytes, whatever they mean."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 2, 4, 16))):
        at = random.randrange(len(changed) + 1)
        match random.randrange(4):
            case 0:
                changed[at : at + 1] = random.randbytes(1)
            case 1:
                changed[at:at] = random.choice(BYTES)
            case 2:
                del changed[at : at + random.randrange(1, 30)]
            case _:
                changed[at:at] = random.randbytes(random.randrange(1, 9))
    return bytes(changed)


def _program(random: Random) -> str:
    return program_of(random.randbytes(random.randrange(CHOICES // 4))).source


def _sample(random: Random) -> str:
    """Choose a program, or more often an item of one: small inputs are quick."""
    text = random.choice(PROGRAMS)
    return text if random.random() < 0.05 else random.choice(text.split("\n\n"))


def _mangled(random: Random) -> bytes:
    return mangled(_sample(random).encode(), random)


def _spoilt_and_mangled(random: Random) -> bytes:
    return mangled(spoilt(_sample(random), random).encode(), random)


def _words(random: Random) -> bytes:
    words = (*WORDS, *NAMES, *NUMBERS, *CHARACTERS)
    chosen = random.choices(words, k=random.randrange(40))
    return random.choice(("", " ")).join(chosen).encode()


def _bytes(random: Random) -> bytes:
    return random.randbytes(random.randrange(200))


_MAKERS: Final[dict[str, tuple[float, Callable[[Random], bytes]]]] = {
    "spoilt": (12, lambda r: spoilt(_sample(r), r).encode()),
    "spoilt random program": (1, lambda r: spoilt(_program(r), r).encode()),
    "random program": (0.5, lambda r: _program(r).encode()),
    "derived": (2, lambda r: derived(r).encode()),
    "mangled": (33, _mangled),
    "spoilt and mangled": (21.5, _spoilt_and_mangled),
    "words": (15, _words),
    "bytes": (15, _bytes),
}
"""The ways of making an input: in how many of 100 each is taken, and what makes it."""


def make(random: Random) -> tuple[str, bytes]:
    """Return an input, after the name of how it was made."""
    weights = [weight for weight, _ in _MAKERS.values()]
    (name,) = random.choices(tuple(_MAKERS), weights)
    return name, _MAKERS[name][1](random)[:LONGEST]


def mutated(data: bytes, random: Random) -> bytes:
    """Return another input made from one."""
    if random.random() < 0.3:
        return mangled(data, random)[:LONGEST]
    return spoilt(data.decode("utf-8", "replace"), random).encode()[:LONGEST]
