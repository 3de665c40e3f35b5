"""Diagnostics become dataclasses when the first one is made, in any thread."""

from __future__ import annotations

import dataclasses
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest

from kerngen.source import diagnostic
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Source, Span


def test_threads_make_one_dataclass(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[type] = []

    def slow(**options: Any) -> Any:
        make: Any = dataclasses.dataclass(**options)

        def slowly(kind: type) -> Any:
            made.append(kind)
            time.sleep(0.02)
            return make(kind)

        return slowly

    class Wrong(Diagnostic):
        MESSAGE = "'{text}' is no {kind}."
        kind: str

    barrier = Barrier(4)

    def message(kind: str) -> str:
        barrier.wait()
        return Wrong(span=Span(Source("a.kern", "x"), 0, 1), kind=kind).message

    monkeypatch.setattr(diagnostic, "dataclass", slow)
    with ThreadPoolExecutor(4) as threads:
        found = [*threads.map(message, "abcd")]
    assert found == [f"'x' is no {kind}." for kind in "abcd"]
    assert made == [Wrong]
