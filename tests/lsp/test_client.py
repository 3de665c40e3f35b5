"""The server as a real client talks to it, in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient

TEXT = """\
/// é\U0001d4b3
kernel scale(x: f32[n], alpha: f32) -> y: f32[n] { y[i] = alpha * x[i]; }
"""


@pytest_lsp.fixture(
    config=ClientServerConfig(server_command=[sys.executable, "-m", "kerngen", "lsp"])
)
async def client(lsp_client: LanguageClient) -> AsyncGenerator[None]:
    await lsp_client.initialize_session(
        types.InitializeParams(
            capabilities=types.ClientCapabilities(
                general=types.GeneralClientCapabilities(
                    position_encodings=[types.PositionEncodingKind.Utf8]
                )
            )
        )
    )
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
async def test_a_session(client: LanguageClient, tmp_path: Path) -> None:
    uri = (tmp_path / "scale.kern").as_uri()
    document = types.VersionedTextDocumentIdentifier(1, uri)
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(
            types.TextDocumentItem(
                uri, "kerngen", 0, TEXT.replace("alpha *", "alhpa *")
            )
        )
    )
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    (shown,) = client.diagnostics[uri]
    assert shown.code == "KG0201"
    client.text_document_did_change(
        types.DidChangeTextDocumentParams(
            document, [types.TextDocumentContentChangeWholeDocument(TEXT)]
        )
    )
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert [x.severity for x in client.diagnostics[uri]] == []
