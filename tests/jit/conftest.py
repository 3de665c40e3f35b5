"""A real IPython shell, without its history and its user's settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


@dataclass(frozen=True)
class Notebook:
    """A shell, whose own methods have no types."""

    shell: Any

    def run(self, cell: str) -> BaseException | None:
        """Run a cell; return what it raised."""
        result = self.shell.run_cell(cell)
        error: BaseException | None = result.error_before_exec or result.error_in_exec
        return error

    def shown(self, value: object) -> dict[str, str]:
        """Return what the shell would send to a browser for a value."""
        data: dict[str, str] = self.shell.display_formatter.format(value)[0]
        return data

    @property
    def names(self) -> dict[str, Any]:
        """The user's namespace."""
        names: dict[str, Any] = self.shell.user_ns
        return names


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """Return a notebook that has loaded the extension."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config: Any = Config()
    config.HistoryManager.enabled = False
    shell: Any = InteractiveShell
    notebook = Notebook(shell.instance(config=config))
    assert notebook.run("%load_ext kerngen") is None
    yield notebook
    shell.clear_instance()
