"""The page about notebooks is one: its blocks run as cells, in their order."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.jit.conftest import Notebook
from tests.project.tree import ROOT

PAGE = (ROOT / "docs" / "notebooks.md").read_text("utf-8")


def test_the_page_runs(
    notebook: Notebook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KERNGEN_ADAPTER", "software")
    cells = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(cells) == 4
    for cell in cells:
        assert notebook.run(cell) is None
    assert "[3. 6. 9.]" in capsys.readouterr().out
    np.testing.assert_allclose(notebook.names["_"].numpy(), [[0.6, 0.8], [0.0, 1.0]])
