"""What can be wrong with the conditions that a kernel requires of a call: codes KG09xx."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from kerngen.source.worded import Worded, WordedNear


@final
@dataclass(frozen=True, kw_only=True)
class RequireReads(WordedNear):
    """A condition on a call that asks for what is not known before the kernel runs."""

    code: ClassVar[str] = "KG0901"
    rule: ClassVar[str] = "A 'require' reads dims, integer scalars and constants."
    says: ClassVar[str] = "A 'require' can't use {what}."
    nearby: ClassVar[str] = "declared here"
    advice: ClassVar[str] = (
        "It is checked before the kernel runs, and is made of dims, integer scalars, "
        "constants, arithmetic and comparisons: 'require d % 8 == 0;'."
    )

    what: str


@final
@dataclass(frozen=True, kw_only=True)
class RequireType(Worded):
    """A condition on a call that is a number."""

    code: ClassVar[str] = "KG0902"
    rule: ClassVar[str] = "What a kernel requires is true or false."
    says: ClassVar[str] = "What is required is true or false, but this is a number."
    advice: ClassVar[str] = "Compare it with something: 'require {example};'."

    example: str


@final
@dataclass(frozen=True, kw_only=True)
class NeverMet(Worded):
    """A condition that no call meets, by itself or beside those above it."""

    code: ClassVar[str] = "KG0903"
    rule: ClassVar[str] = "There are calls that meet what a kernel requires."
    says: ClassVar[str] = "No call of '{kernel}' meets {text}."
    advice: ClassVar[str] = "{remedy}"

    kernel: str
    text: str
    remedy: str


@final
@dataclass(frozen=True, kw_only=True)
class AlwaysMet(Worded):
    """A condition that every call meets, by itself or after those above it."""

    code: ClassVar[str] = "KG0904"
    rule: ClassVar[str] = "A 'require' refuses some calls."
    says: ClassVar[str] = "Every call of '{kernel}' meets {text}."
    advice: ClassVar[str] = "{remedy}"

    kernel: str
    text: str
    remedy: str
