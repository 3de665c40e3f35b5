"""Where this kerngen was installed from, if it is no index of packages."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, PackageNotFoundError


def origin() -> str:
    """Return the address of a checkout, or nothing if an index will have this kerngen.

    Installers note it: https://packaging.python.org/en/latest/specifications/direct-url.
    """
    try:
        text = Distribution.from_name("kerngen").read_text("direct_url.json")
    except PackageNotFoundError:
        return ""
    return str(json.loads(text)["url"]) if text else ""
