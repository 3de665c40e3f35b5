"""Asked for help, the scripts of `tools/` print it, and do nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.project.tree import ROOT

SCRIPTS = ("demo", "docs", "parity", "performance", "test-versions")


@pytest.mark.parametrize("name", SCRIPTS)
def test_help_is_the_comment_at_the_top(name: str, tmp_path: Path) -> None:
    script = ROOT / "tools" / name
    comment: list[str] = []
    for line in script.read_text("utf-8").splitlines()[1:]:
        if not line.startswith("#"):
            break
        comment.append(line.removeprefix("#").removeprefix(" "))
    # Without these programs, nothing can be installed, run or measured.
    (tmp_path / "bin").mkdir()
    for program in ("dirname", "sed"):
        (tmp_path / "bin" / program).symlink_to(f"/usr/bin/{program}")
    done = subprocess.run(
        ["/bin/bash", script, "--help"],
        cwd=tmp_path,
        env={"PATH": str(tmp_path / "bin")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines() == comment
    assert f"    tools/{name} " in done.stdout
    assert done.stderr == ""
