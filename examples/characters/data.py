"""The text: docstrings of Python's own standard library, as numbers of characters."""

from __future__ import annotations

import ast
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.uint32]

NOT_READ = {"site-packages", "dist-packages", "test", "tests", "lib2to3", "idlelib"}
"""Folders of what others installed, of tests, and of what some systems leave out."""

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

BETWEEN = "\n\n"
"""What separates one docstring from the next."""

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""What stands for a character that is not in the vocabulary."""


def docstrings(root: Path) -> Iterator[str]:
    """Yield the docstrings of the Python files below a folder, each text once.

    The files come in the order of their paths, the docstrings in that of `ast.walk`.
    """
    seen: set[str] = set()
    for file in sorted(root.rglob("*.py")):
        if NOT_READ.isdisjoint(file.relative_to(root).parts):
            for text in _docstrings_in(file):
                if text not in seen:
                    seen.add(text)
                    yield text


def _docstrings_in(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes(), str(file))):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
            yield text


@final
@dataclass(frozen=True)
class Vocabulary:
    """The characters that have a number of their own; one more stands for all others."""

    characters: str

    @staticmethod
    def of(text: str, size: int) -> Vocabulary:
        """Choose the most frequent characters of a text, at most `size` - 1."""
        counts = Counter(each for each in text if each.isprintable() or each == "\n")
        ranked = sorted(counts, key=lambda character: (-counts[character], character))
        return Vocabulary("".join(ranked[: size - 1]))

    @property
    def size(self) -> int:
        """How many numbers there are, that of all other characters included."""
        return len(self.characters) + 1

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {character: i for i, character in enumerate(self.characters)}

    def encode(self, text: str) -> Ids:
        """Return the number of each character."""
        numbers, unknown = self._numbers, len(self.characters)
        return np.array([numbers.get(each, unknown) for each in text], np.uint32)

    def decode(self, ids: Ids) -> str:
        """Return the characters of these numbers."""
        return "".join((self.characters + UNKNOWN)[i] for i in ids)


@final
@dataclass(frozen=True)
class Text:
    """What to train with and what to validate with, nine to one, as numbers."""

    vocabulary: Vocabulary
    train: Ids
    validation: Ids

    @property
    def digest(self) -> str:
        """A hash of all of it: other versions of Python have other docstrings."""
        parts = (self.vocabulary.characters.encode(), self.train, self.validation)
        return sha256(b"".join(bytes(part) for part in parts)).hexdigest()[:16]


def load_text(characters: int, vocabulary: int) -> Text:
    """Return about so many characters of docstrings, every tenth docstring for validation."""
    documents = load_documents(characters)
    known = Vocabulary.of(BETWEEN.join(documents), vocabulary)
    train, validation = (known.encode(part) for part in parts(documents))
    return Text(known, train, validation)


def load_documents(characters: int) -> list[str]:
    """Return docstrings of the standard library, about so many characters in all."""
    documents: list[str] = []
    missing = characters
    for document in docstrings(Path(sysconfig.get_path("stdlib"))):
        if missing <= 0:
            break
        documents.append(document)
        missing -= len(document) + len(BETWEEN)
    return documents


def parts(documents: list[str]) -> tuple[str, str]:
    """Return what to train with, and every tenth document to validate with."""
    validation = BETWEEN.join(islice(documents, 9, None, 10))
    train = BETWEEN.join(text for i, text in enumerate(documents) if i % 10 != 9)
    return train, validation


@final
@dataclass(frozen=True)
class Batch:
    """Windows of a text, a row each, and for every character the one that follows it."""

    given: Ids
    following: Ids


def windows(ids: Ids, starts: NDArray[np.int64], context: int) -> Batch:
    """Return the windows that begin at `starts`."""
    rows = ids[starts[:, None] + np.arange(context + 1)]
    return Batch(rows[:, :-1], rows[:, 1:])


def training_batch(
    ids: Ids, rows: int, context: int, seed: int, step: int, part: slice = slice(None)
) -> Batch:
    """Return the windows of a step, drawn by the seed and its number alone.

    A run that is resumed so sees what it would have seen, and several processes, each with
    its `part` of the rows, see what one does.
    """
    rng = np.random.default_rng((seed, step))
    return windows(ids, rng.integers(0, len(ids) - context, rows)[part], context)


def validation_batches(ids: Ids, rows: int, context: int, count: int) -> list[Batch]:
    """Return windows all over a text, always the same ones."""
    starts = np.linspace(0, len(ids) - context - 1, rows * count).astype(np.int64)
    return [windows(ids, part, context) for part in np.split(starts, count)]
