"""A command on a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess


def on_a_terminal(*command: str, **environment: str) -> str:
    """Return what a command prints to it, on both streams.

    It is read meanwhile: a terminal holds a few thousand characters, and then its writer
    waits.
    """
    ours, theirs = pty.openpty()
    text = b""
    with subprocess.Popen(
        command,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", **environment},
    ):
        os.close(theirs)
        try:
            while chunk := os.read(ours, 4096):
                text += chunk
        except OSError:  # Linux's way to say that the other end is closed
            pass
        os.close(ours)
    return text.decode()
