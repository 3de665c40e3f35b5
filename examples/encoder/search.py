"""Semantic search: the passages of pages that are nearest to a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np

from examples.encoder.model import Encoder

LONGEST: Final = 700
"""Characters of a passage; some 150 tokens, of which such models were trained on."""


_CODE: Final = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


@final
@dataclass(frozen=True)
class Hit:
    """A passage, and the cosine of its angle to the question."""

    where: str
    text: str
    score: float


def passages(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Yield the paragraphs of Markdown files, each with its file and heading.

    Blocks of code and tables are left out: they are no sentences.
    """
    for path in paths:
        heading, prose = path.name, _CODE.sub("", path.read_text(encoding="utf-8"))
        for paragraph in prose.split("\n\n"):
            text = " ".join(paragraph.split())
            if text.startswith("#"):
                heading = f"{path.name}: {text.lstrip('# ')}"
            elif text and not text.startswith(("|", "<!--")):
                yield from ((heading, part) for part in _parts(text))


def _parts(text: str) -> Iterator[str]:
    """Cut a paragraph between sentences, where it is long."""
    part = ""
    for sentence in text.replace(". ", ".\n").split("\n"):
        if part and len(part) + len(sentence) > LONGEST:
            yield part
            part = ""
        part = f"{part} {sentence}".strip()
    if part:
        yield part


def search(
    encoder: Encoder, question: str, among: Sequence[tuple[str, str]], top: int = 5
) -> list[Hit]:
    """Return the passages nearest to a question, the nearest first."""
    vectors = encoder.encode([question, *(text for _, text in among)])
    scores = vectors[1:] @ vectors[0]
    order: list[int] = np.argsort(-scores, kind="stable")[:top].tolist()
    return [Hit(among[at][0], among[at][1], float(scores[at])) for at in order]
