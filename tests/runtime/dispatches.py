"""What a context really dispatches."""

from __future__ import annotations

from typing import Any

import pytest

from kerngen.runtime import Context


def watch_dispatches(ctx: Context, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that fills with the labels of the shaders that a device context records.

    A label is `'kernel' (name of the shader)`.
    """
    backend: Any = ctx.backend
    recorder = backend._recorder
    dispatch, labels = recorder._dispatch, list[str]()

    def spy(ready: Any, *others: Any) -> None:
        labels.extend(step.shader.label for step, _ in ready)
        dispatch(ready, *others)

    monkeypatch.setattr(recorder, "_dispatch", spy)
    return labels
