"""The server: requests of the client, and their answers.

Nothing here knows the language: each feature is a module of its own.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol, final

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import json_rpc

from kerngen import __version__
from kerngen.lsp import (
    actions,
    calls,
    completion,
    editing,
    inlays,
    lenses,
    places,
    tokens,
)
from kerngen.lsp import hover as features
from kerngen.lsp import rename as renaming
from kerngen.lsp.checked import Checked
from kerngen.lsp.files import FindProject, uri_of
from kerngen.lsp.workspace import Workspace

_DELAY: Final = 0.02
"""Seconds from a change to its check, so that several changes at once need one check."""


_WATCHED: Final = ("**/*.kern", "**/pyproject.toml")
"""Files whose changes on the disk may change findings."""


class _RefusedError(JsonRpcInvalidParams):
    """Raised to refuse a request, as a rename; it is no fault of the server."""


def _is_fault(record: logging.LogRecord) -> bool:
    """Whether a record of the log is not about a request that was refused."""
    return record.exc_info is None or not isinstance(record.exc_info[1], _RefusedError)


class _AtPlace(Protocol):
    text_document: types.TextDocumentIdentifier
    position: types.Position


@final
class KernServer(LanguageServer):
    """The server: its workspace, and the next check, if one is due."""

    def __init__(self, find: FindProject) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]  # it takes any others
            "kerngen",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Full,
        )
        self._find = find
        self.open = Workspace(find)
        self._due: asyncio.TimerHandle | None = None
        self._shown_in: TemporaryDirectory[str] | None = None

    def begin(self) -> None:
        """Set the encoding of columns that was agreed with the client."""
        encoding = self.workspace.position_encoding
        self.open = Workspace(self._find, str(getattr(encoding, "value", encoding)))

    def checked(self, uri: str) -> Checked | None:
        """Return an open file with its results; a check that is due is done first."""
        if self._due:
            self.publish()
        return self.open.checked(uri)

    def part(self, params: _AtPlace) -> tuple[Checked, int] | None:
        """Return the part of a file around the place of a request, and its offset."""
        found = self.place(params)
        return found and (found[0].around(found[1]), found[1])

    def place(self, params: _AtPlace) -> tuple[Checked, int] | None:
        """Return the file and the offset of a request."""
        checked = self.checked(params.text_document.uri)
        if checked is None:
            return None
        return checked, checked.columns.offset(params.position)

    def show(self, name: str, text: str) -> None:
        """Ask the editor to open a text, as a new temporary file.

        Where the editor can't open one, as Neovim before 0.8, the file's path is shown.
        """
        if self._shown_in is None:
            self._shown_in = TemporaryDirectory(prefix="kerngen-")
        file = Path(self._shown_in.name, name)
        file.write_text(text, encoding="utf-8")
        window = self.client_capabilities.window
        can_show = window and window.show_document and window.show_document.support
        if can_show:
            self.window_show_document(
                types.ShowDocumentParams(uri_of(file), take_focus=True)
            )
        else:
            self.window_show_message(
                types.ShowMessageParams(types.MessageType.Info, f"Written to {file}")
            )

    def watch(self) -> None:
        """Ask the editor for notifications of changes on the disk, if it has them."""
        workspace = self.client_capabilities.workspace
        files = workspace and workspace.did_change_watched_files
        if files and files.dynamic_registration:
            watched = [types.FileSystemWatcher(each) for each in _WATCHED]
            options = types.DidChangeWatchedFilesRegistrationOptions(watched)
            method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
            self.client_register_capability(
                types.RegistrationParams([types.Registration("disk", method, options)])
            )

    def check_soon(self) -> None:
        """Check changed files once no more messages are waiting."""
        if self._due:
            self._due.cancel()
        self._due = asyncio.get_running_loop().call_later(_DELAY, self.publish)

    def publish(self) -> None:
        """Send the diagnostics of files where they have changed."""
        if self._due:
            self._due.cancel()
            self._due = None
        for uri, shown in self.open.update().items():
            self.text_document_publish_diagnostics(
                types.PublishDiagnosticsParams(uri, shown)
            )


def serve(find: FindProject) -> None:
    """Serve a client over stdin and stdout until it disconnects."""
    # Most objects that a check makes live as long as its file, so collections of garbage
    # would find little: they are made rare.
    gc.set_threshold(100_000, 50, 50)
    logging.getLogger(json_rpc.__name__).addFilter(_is_fault)
    make_server(find).start_io()


def make_server(find: FindProject) -> KernServer:
    """Return a server with all requests registered."""
    server = KernServer(find)
    _add_documents(server)
    _add_reading(server)
    _add_editing(server)
    _add_lenses(server)
    return server


def _add_documents(server: KernServer) -> None:
    """Register the notifications by which texts are kept as in the client."""

    @server.feature(types.INITIALIZE)
    def begin(_params: types.InitializeParams) -> None:
        server.begin()

    @server.feature(types.INITIALIZED)
    def begun(_params: types.InitializedParams) -> None:
        server.watch()

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


def _add_reading(server: KernServer) -> None:
    """Register the requests of a reader: hover, navigation, highlighting, inlay hints."""

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        place = server.part(params)
        return features.hover(*place) if place else None

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> list[types.Location]:
        place = server.part(params)
        return places.definition(*place) if place else []

    @server.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(params: types.ReferenceParams) -> list[types.Location]:
        place = server.place(params)
        all_ = params.context.include_declaration
        return places.references(*place, with_definition=all_) if place else []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT)
    def highlight(
        params: types.DocumentHighlightParams,
    ) -> list[types.DocumentHighlight]:
        place = server.place(params)
        return places.highlights(*place) if place else []

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        checked = server.checked(params.text_document.uri)
        return places.symbols(checked) if checked else []

    @server.feature(types.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, tokens.LEGEND)
    def semantic(params: types.SemanticTokensParams) -> types.SemanticTokens:
        checked = server.checked(params.text_document.uri)
        return tokens.tokens(checked) if checked else types.SemanticTokens([])

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    def inlay(params: types.InlayHintParams) -> list[types.InlayHint]:
        checked = server.checked(params.text_document.uri)
        if checked is None:
            return []
        start, end = (
            checked.columns.offset(each)
            for each in (params.range.start, params.range.end)
        )
        return inlays.inlays(checked.around(start, end), start, end)


def _add_editing(server: KernServer) -> None:
    """Register the requests of a writer: completion, actions, formatting, renaming."""
    options = types.CompletionOptions(trigger_characters=completion.TRIGGERS)

    @server.feature(types.TEXT_DOCUMENT_COMPLETION, options)
    def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        place = server.part(params)
        return completion.completions(*place) if place else []

    kinds = types.CodeActionOptions(actions.KINDS)

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, kinds)
    def act(params: types.CodeActionParams) -> list[types.CodeAction]:
        checked = server.checked(params.text_document.uri)
        if checked is None:
            return []
        start, end = (
            checked.columns.offset(each)
            for each in (params.range.start, params.range.end)
        )
        return actions.actions(checked, start, end, params.context.only)

    signatures = types.SignatureHelpOptions(trigger_characters=["(", ","])

    @server.feature(types.TEXT_DOCUMENT_SIGNATURE_HELP, signatures)
    def signature(params: types.SignatureHelpParams) -> types.SignatureHelp | None:
        place = server.part(params)
        return calls.signature_help(*place) if place else None

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def form(params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        checked = server.checked(params.text_document.uri)
        return editing.formatting(checked) if checked else []

    @server.feature(
        types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True)
    )
    def rename(params: types.RenameParams) -> types.WorkspaceEdit | None:
        place = server.place(params)
        try:
            return renaming.rename(*place, params.new_name) if place else None
        except renaming.RenameError as error:
            raise _RefusedError(str(error)) from None

    @server.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(params: types.PrepareRenameParams) -> types.Range | None:
        place = server.place(params)
        name = renaming.renamable(*place) if place else None
        return place[0].range(name.span) if place and name else None


def _add_lenses(server: KernServer) -> None:
    """Register the code lenses, and their commands."""

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    def lens(params: types.CodeLensParams) -> list[types.CodeLens]:
        checked = server.checked(params.text_document.uri)
        return lenses.lenses(checked) if checked else []

    def add(name: str) -> None:
        @server.command(name)
        def show(uri: str, item: str) -> str | None:
            checked = server.checked(uri)
            if checked is None or not checked.is_right:
                return None
            text = lenses.run(name, checked, item)
            server.show(f"{item}.{name.partition('.')[2]}.txt", text)
            return text

    for name in lenses.COMMANDS:
        add(name)
