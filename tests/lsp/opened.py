"""Files that are open in a server's workspace, without a process or a client."""

from __future__ import annotations

from pathlib import Path

from kerngen.cli.lsp import find_selection
from kerngen.lsp.checked import Checked
from kerngen.lsp.files import uri_of
from kerngen.lsp.workspace import Workspace


def opened(path: Path, text: str | None = None, encoding: str = "utf-16") -> Workspace:
    """Return a workspace with one file open, with another text if one is given."""
    workspace = Workspace(find_selection, encoding)
    put(workspace, path, text)
    return workspace


def put(workspace: Workspace, path: Path, text: str | None = None) -> str:
    """Open or change a file; return its URI."""
    uri = uri_of(path)
    workspace.put(uri, path.read_bytes().decode() if text is None else text)
    return uri


def checked(path: Path, text: str | None = None) -> Checked:
    """Return what is known of a file."""
    found = opened(path, text).checked(uri_of(path))
    assert found is not None
    return found
