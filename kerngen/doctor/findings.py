"""Findings of the doctor: sections of facts, each with a status and advice."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypedDict, final


class Status(IntEnum):
    """The status of a finding; the worst one in a section is the section's."""

    OK = 0
    WARNING = 1
    FAILED = 2

    @property
    def word(self) -> str:
        """The status in words, for scripts."""
        return self.name.lower()


class FindingData(TypedDict):
    """A finding as JSON data."""

    status: str
    text: str
    advice: list[str]


class SectionData(TypedDict):
    """A section as JSON data."""

    title: str
    status: str
    findings: list[FindingData]


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """A finding: one fact, its status, and advice."""

    text: str
    status: Status = Status.OK
    advice: tuple[str, ...] = ()

    def as_data(self) -> FindingData:
        """Return the finding as JSON data."""
        return {
            "status": self.status.word,
            "text": self.text,
            "advice": [*self.advice],
        }


@final
@dataclass(frozen=True, slots=True)
class Section:
    """Findings about one topic."""

    title: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst of its findings."""
        return max((each.status for each in self.findings), default=Status.OK)

    def as_data(self) -> SectionData:
        """Return the section as JSON data."""
        findings = [finding.as_data() for finding in self.findings]
        return {"title": self.title, "status": self.status.word, "findings": findings}
