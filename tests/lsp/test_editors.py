"""Neovim and Emacs with the settings of the documentation, in a real buffer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import blocks_of
from tests.project.tree import ROOT

SCRIPT = """
vim.cmd("edit a.kern")
local function diagnostics(some)
  vim.wait(60000, function() return (#vim.diagnostic.get(0) > 0) == some end, 100)
  return vim.diagnostic.get(0)
end
print(diagnostics(true)[1].code .. "\\n")
vim.api.nvim_win_set_cursor(0, {1, 58})
local function ask(method, params)
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 60000)) do
    return answer.result
  end
end
local params = vim.lsp.util.make_range_params()
params.context = { diagnostics = {} }
vim.lsp.util.apply_workspace_edit(ask("textDocument/codeAction", params)[1].edit, "utf-16")
print(#diagnostics(false) .. "\\n")
print(ask("textDocument/hover", vim.lsp.util.make_position_params()).contents.value .. "\\n")
vim.lsp.buf.formatting_sync(nil, 60000)
ask("workspace/executeCommand", {
  command = "kerngen.wgsl",
  arguments = { vim.uri_from_bufnr(0), "scale" },
})
local function shown() return vim.api.nvim_exec("messages", true):match("Written to (%S+)") end
vim.wait(60000, shown, 100)
print(vim.fn.readfile(shown())[1] .. "\\n")
print(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\\n"))
vim.cmd("qa!")
"""


WRONG = "kernel scale(x: f32[n], alpha: f32) -> y: f32[n] { y[i] = alhpa * x[i]; }\n"


def run(folder: Path, settings: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run an editor on a wrong file, with settings from the documentation.

    Debian 12 has eglot as `elpa-eglot`, as its Emacs is older than 29.
    """
    page = ROOT / "docs" / "editors.md"
    (text,) = (b.text for b in blocks_of(page) if b.title == settings)
    (folder / settings).write_text(text)
    (folder / "a.kern").write_text(WRONG)
    found = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": found, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.nightly
def test_neovim(tmp_path: Path) -> None:
    (tmp_path / "try.lua").write_text(SCRIPT)
    command = ("nvim", "-n", "--headless", "-u", "init.lua", "-c", "luafile try.lua")
    done = run(tmp_path, "init.lua", *command)
    printed = [line for line in done.stderr.splitlines() if line]
    assert printed[:2] == ["KG0201", "0"]
    assert "alpha: f32" in printed
    assert any("kernel scale" in line for line in printed)
    assert printed[-3:] == [
        "kernel scale(x: f32[n], alpha: f32) -> y: f32[n] {",
        "    y[i] = alpha * x[i];",
        "}",
    ]


@pytest.mark.nightly
def test_emacs(tmp_path: Path) -> None:
    script = Path(__file__).with_name("editor.el")
    done = run(tmp_path, "init.el", "emacs", "--batch", "-l", str(script))
    assert "fault: kerngen [KG0201]: Unknown name 'alhpa'." in done.stdout
    assert "column: 58" in done.stdout
    assert "alpha: f32" in done.stdout.partition("hover:")[2]
    assert "complete: (alpha)" in done.stdout
    assert done.stdout.endswith("""\
defined: (kernel scale(source: f32[n], alpha: f32) -> y: f32[n] {)
kernel scale(source: f32[n], alpha: f32) -> y: f32[n] {
    y[i] = alpha * source[i];
}
""")
