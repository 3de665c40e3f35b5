"""The server: what a client sends, and what it is answered.

Nothing here knows the language: each feature is a module of its own.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Final, final

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from kerngen import __version__
from kerngen.lsp.files import FindProject
from kerngen.lsp.workspace import Workspace

_DELAY: Final = 0.02
"""Seconds from a change to its check: of several that are there already, the last counts."""


@final
class KernServer(LanguageServer):
    """A server with its workspace, and the check that is due, if one is."""

    def __init__(self, find: FindProject) -> None:
        super().__init__(
            "kerngen",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
        )
        self._find = find
        self.open = Workspace(find)
        self._due: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Take the encoding of columns that was agreed on with the client."""
        encoding = self.workspace.position_encoding
        self.open = Workspace(self._find, str(getattr(encoding, "value", encoding)))

    def check_soon(self) -> None:
        """Check what changed, once no further message is waiting."""
        if self._due:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_later(_DELAY, self.publish)

    def publish(self) -> None:
        """Show what is found in files, where it is not what was shown before."""
        for uri, shown in self.open.update().items():
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, shown)
            )


def serve(find: FindProject) -> None:
    """Serve a client over stdin and stdout until it goes."""
    # A check makes much that lives as long as its file: garbage is rare.
    gc.set_threshold(100_000, 50, 50)
    make_server(find).start_io()


def make_server(find: FindProject) -> KernServer:
    """Return a server that answers all that it can."""
    server = KernServer(find)
    _add_documents(server)
    return server


def _add_documents(server: KernServer) -> None:
    """Keep texts as the client has them."""

    @server.feature(types.INITIALIZE)
    def begin(_params: types.InitializeParams) -> None:
        server.begin()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        put(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        put(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        server.open.close(params.text_document.uri)
        server.check_soon()

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(_params: types.DidSaveTextDocumentParams) -> None:
        look_again()

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def watched(_params: types.DidChangeWatchedFilesParams) -> None:
        look_again()

    def put(uri: str) -> None:
        server.open.put(uri, server.workspace.get_text_document(uri).source)
        server.check_soon()

    def look_again() -> None:
        server.open.forget_projects()
        server.check_soon()
