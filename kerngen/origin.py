"""The origin of this installation: a checkout, a file, or a package index."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


def origin() -> str:
    """Return the address of a checkout or file, or "" for a package index."""
    return str(_direct_url().get("url", ""))


def kernels_address() -> str:
    """Return pip's address of the standard kernels, or "" if there is none.

    There is none for a package index, which has the kernels, too, and for a file.
    """
    note = _direct_url()
    url = str(note.get("url", ""))
    if "vcs_info" in note:
        vcs = note["vcs_info"]
        return (
            f"kerngen-kernels @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
            f"#subdirectory=generated"
        )
    if "dir_info" in note:
        return str(Path(url2pathname(urlsplit(url).path)) / "generated")
    return ""


def _direct_url() -> dict[str, Any]:
    """Return the note that installers leave where a package comes from an address.

    https://packaging.python.org/en/latest/specifications/direct-url has its form.
    """
    try:
        text = Distribution.from_name("kerngen").read_text("direct_url.json")
    except PackageNotFoundError:
        return {}
    note: dict[str, Any] = json.loads(text) if text else {}
    return note
