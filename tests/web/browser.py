"""A browser that works for tests: it asks a server of ours for jobs, and sends results.

No driver is needed: the page of `page/` does what a test asks for.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, Final, final

ROOT: Final = Path(__file__).parents[2]

_TYPES: Final = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".wasm": "application/wasm",
    ".wgsl": "text/plain",
}
_PATIENCE: Final = 300
"""Seconds that a job may take: a tile of attention is compiled for a minute, or more beside others."""

_FIREFOX: Final = """
user_pref("dom.webgpu.enabled", true);
user_pref("gfx.webgpu.ignore-blocklist", true);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("app.update.enabled", false);
user_pref("browser.tabs.crashReporting.sendReport", false);
user_pref("dom.min_background_timeout_value", 4);
"""
_CHROMIUM: Final = (
    "--headless=new",
    "--no-sandbox",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--enable-unsafe-webgpu",
    "--use-webgpu-adapter=swiftshader",
    "--enable-unsafe-swiftshader",
)


class JobError(Exception):
    """A job threw: the error's class and its message."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        """Quote the page."""
        super().__init__(
            f"{result['error']}: {result['message']}\n{result.get('stack')}"
        )
        self.name = str(result["error"])
        self.message = str(result["message"])


@final
@dataclass
class Browser:
    """A page at work."""

    folders: Mapping[str, Path]
    jobs: Queue[dict[str, Any]] = field(default_factory=Queue)
    results: dict[int, Queue[dict[str, Any]]] = field(default_factory=dict)
    number: int = 0
    host: str = ""

    def start(self, name: str, **given: Any) -> int:
        """Begin a job; return its number."""
        self.number += 1
        self.results[self.number] = Queue()
        self.jobs.put({"id": self.number, "name": name, "given": given})
        return self.number

    def finish(self, number: int) -> Any:
        """Wait for a job; return what came of it, or raise JobError."""
        try:
            result = self.results[number].get(timeout=_PATIENCE)
        except Empty:
            raise TimeoutError(f"A job takes longer than {_PATIENCE} s.") from None
        del self.results[number]
        if "error" in result:
            raise JobError(result)
        return result["value"]

    def do(self, name: str, **given: Any) -> Any:
        """Do a job."""
        return self.finish(self.start(name, **given))

    def run(self, source: str, given: object = None) -> Any:
        """Run a module that exports a function of the context, `(ctx, given) => ...`.

        HOST in its text is where the package's modules and the generated ones are.
        """
        source = source.replace("HOST", self.host)
        return self.do("run", source=source, given=given)


def _handler(browser: Browser) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path == "/job":
                try:
                    self._answer(200, json.dumps(browser.jobs.get(timeout=5)).encode())
                except Empty:
                    self._answer(204, b"")
                return
            top, _, rest = self.path.lstrip("/").partition("/")
            file = browser.folders.get(top, Path("/none")) / rest.partition("?")[0]
            if file.is_file():
                self._answer(200, file.read_bytes(), _TYPES.get(file.suffix, ""))
            else:
                self._answer(404, b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            browser.results[int(self.path.rpartition("/")[2])].put(json.loads(body))
            self._answer(200, b"")

        def _answer(self, code: int, body: bytes, kind: str = "") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind or "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Print nothing."""

    return Handler


class _Server(ThreadingHTTPServer):
    """One that says nothing of a browser that left while it was answered."""

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: a job without a result fails its test."""


def command(name: str, profile: Path, url: str) -> list[str]:
    """Return what starts a browser that is installed."""
    if name == "firefox":
        program = shutil.which("firefox-esr") or shutil.which("firefox")
        assert program, "there is no Firefox: apt-get install firefox-esr"
        (profile / "user.js").write_text(_FIREFOX, "utf-8")
        return [program, "--headless", "--no-remote", "--profile", str(profile), url]
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "there is no Chromium: apt-get install chromium"
    return [program, *_CHROMIUM, f"--user-data-dir={profile}", url]


@contextmanager
def browser(name: str, generated: Path, start: str = "index") -> Generator[Browser]:
    """Start a browser; `generated` are the modules that it may import.

    With `production` as its start, they import what production loads of the package.
    """
    page = Browser(
        {
            "page": Path(__file__).parent / "page",
            "dist": ROOT / "web" / "dist",
            "generated": generated,
        }
    )
    server = _Server(("127.0.0.1", 0), _handler(page))
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    page.host = f"127.0.0.1:{server.server_port}"
    profile = Path(tempfile.mkdtemp())
    url = f"http://{page.host}/page/{start}.html"
    environment = {**os.environ, "HOME": str(profile), "MOZ_CRASHREPORTER_DISABLE": "1"}
    process = subprocess.Popen(
        command(name, profile, url),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield page
    finally:
        process.terminate()
        process.wait(30)
        server.shutdown()
        server.server_close()
        shutil.rmtree(profile, ignore_errors=True)
