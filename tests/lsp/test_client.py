"""The server as a real client talks to it, in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.client import LanguageClient

TEXT = """\
/// é\U0001d4b3
kernel scale(x: f32[n], alpha: f32) -> y: f32[n] { y[i] = alpha * x[i]; }
"""
WRONG = TEXT.replace("alpha *", "alhpa *")
CAPABILITIES = types.ClientCapabilities(
    general=types.GeneralClientCapabilities(
        position_encodings=[types.PositionEncodingKind.Utf8]
    ),
    workspace=types.WorkspaceClientCapabilities(
        did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
            dynamic_registration=True
        )
    ),
    window=types.WindowClientCapabilities(
        show_document=types.ShowDocumentClientCapabilities(support=True)
    ),
)


Published: TypeAlias = asyncio.Queue[types.PublishDiagnosticsParams]
"""What the server has published, in order."""


async def started() -> tuple[Any, Published]:
    """Return a client whose server runs, and what it publishes."""
    client: Any = LanguageClient("tests", "1")  # its decorators have no types
    published: Published = asyncio.Queue()

    def keep(params: types.PublishDiagnosticsParams) -> None:
        published.put_nowait(params)

    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(keep)
    await client.start_io(sys.executable, "-m", "kerngen", "lsp")
    await client.initialize_async(types.InitializeParams(capabilities=CAPABILITIES))
    return client, published


async def diagnostics(published: Published, uri: str) -> list[types.Diagnostic]:
    """Return what is published next, which is of this file."""
    params = await published.get()
    assert params.uri == uri
    return [*params.diagnostics]


async def watched(client: Any) -> set[str]:
    """Return the files whose changes on the disk the server asks to be told of."""
    asked: asyncio.Queue[types.RegistrationParams] = asyncio.Queue()

    def keep(params: types.RegistrationParams) -> None:
        asked.put_nowait(params)

    client.feature(types.CLIENT_REGISTER_CAPABILITY)(keep)
    client.initialized(types.InitializedParams())
    (registration,) = (await asked.get()).registrations
    assert registration.method == types.WORKSPACE_DID_CHANGE_WATCHED_FILES
    options: Any = registration.register_options
    return {each["globPattern"] for each in options["watchers"]}


async def session(folder: Path) -> None:
    uri = (folder / "scale.kern").as_uri()
    document = types.TextDocumentIdentifier(uri)
    at = types.Position(1, TEXT.split("\n")[1].index("alpha *"))
    client, published = await started()
    assert await watched(client) == {"**/*.kern", "**/pyproject.toml"}
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(uri, "kern", 0, WRONG))
    )
    (shown,) = await diagnostics(published, uri)
    assert (shown.code, shown.range.start) == ("KG0201", at)
    wanted = types.CodeActionParams(
        document, shown.range, types.CodeActionContext([shown])
    )
    found = await client.text_document_code_action_async(wanted)
    assert found is not None
    (action,) = found
    assert action.title == "Write 'alpha'"

    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            types.VersionedTextDocumentIdentifier(1, uri),
            [types.TextDocumentContentChangeWholeDocument(TEXT)],
        )
    )
    assert await diagnostics(published, uri) == []
    explained = await client.text_document_hover_async(types.HoverParams(document, at))
    assert explained is not None
    assert "alpha: f32" in str(explained.contents)
    await asks(client, document, at)
    with pytest.raises(JsonRpcInvalidParams, match="can't be a name"):
        await client.text_document_rename_async(types.RenameParams(document, at, "2"))
    await client.shutdown_async(None)
    client.exit(None)
    assert await client._server.stderr.read() == b""
    await client.stop()


async def asks(
    client: LanguageClient, document: types.TextDocumentIdentifier, at: types.Position
) -> None:
    """Ask for all else, which is checked elsewhere: here, that it is answered."""
    whole = types.Range(types.Position(0, 0), types.Position(9, 0))
    context = types.ReferenceContext(include_declaration=True)
    answers: list[Any] = [
        await client.text_document_definition_async(
            types.DefinitionParams(document, at)
        ),
        await client.text_document_references_async(
            types.ReferenceParams(context, document, at)
        ),
        await client.text_document_document_highlight_async(
            types.DocumentHighlightParams(document, at)
        ),
        await client.text_document_document_symbol_async(
            types.DocumentSymbolParams(document)
        ),
        await client.text_document_semantic_tokens_full_async(
            types.SemanticTokensParams(document)
        ),
        await client.text_document_inlay_hint_async(
            types.InlayHintParams(document, whole)
        ),
        await client.text_document_completion_async(
            types.CompletionParams(document, at)
        ),
        await client.text_document_prepare_rename_async(
            types.PrepareRenameParams(document, at)
        ),
        await client.text_document_rename_async(
            types.RenameParams(document, at, "gain")
        ),
        await client.text_document_code_lens_async(types.CodeLensParams(document)),
    ]
    assert all(answers)
    formatted = await client.text_document_formatting_async(
        types.DocumentFormattingParams(document, types.FormattingOptions(4, True))
    )
    assert formatted
    text = await client.workspace_execute_command_async(
        types.ExecuteCommandParams("kerngen.wgsl", arguments=[document.uri, "scale"])
    )
    assert "@compute" in str(text)


def test_a_session(tmp_path: Path) -> None:
    asyncio.run(asyncio.wait_for(session(tmp_path), 120))
