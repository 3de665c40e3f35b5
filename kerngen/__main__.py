"""`python -m kerngen` is `kerngen`."""

from __future__ import annotations

import sys

from kerngen.parts import MissingPartError


def main() -> None:
    """Run the command line, or print which part of kerngen is not installed."""
    try:
        from kerngen.cli import main as commands  # noqa: PLC0415 - it may be missing
    except MissingPartError as error:
        sys.exit(f"Error: {error}")
    commands(prog_name="kerngen")


if __name__ == "__main__":
    main()
