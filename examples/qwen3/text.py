"""Text to ids and back, by the folder's tokenizer.json and chat template."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, cast, final

from examples.qwen3.config import read_json
from examples.qwen3.errors import ModelError


@final
class Tokenizer:
    """The folder's tokenizer; needs the package 'tokenizers'."""

    def __init__(self, folder: Path) -> None:
        """Read tokenizer.json, and the chat template where there is one.

        Raises:
            ModelError: If a file is damaged, or the package is not installed.
        """
        library = _library("tokenizers")
        path = folder / "tokenizer.json"
        try:
            self._tokenizer: Any = library.Tokenizer.from_file(str(path))
        except Exception as error:
            raise ModelError(f"{path} is no tokenizer: {error}.") from error
        self._stream: Any = library.decoders.DecodeStream
        self._settings = _settings(folder)

    @classmethod
    def find(cls, folder: Path) -> Tokenizer | None:
        """Return a folder's tokenizer, or None if it has none."""
        return cls(folder) if (folder / "tokenizer.json").exists() else None

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, with what the tokenizer puts around it."""
        return list(self._tokenizer.encode(text).ids)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, without special tokens."""
        return str(self._tokenizer.decode(list(ids)))

    def stream(self) -> TextStream:
        """Return what decodes ids one by one."""
        return TextStream(self._tokenizer, self._stream(skip_special_tokens=True))

    def chat(self, prompt: str) -> list[int]:
        """Return the ids of a conversation that a user begins.

        Raises:
            ModelError: If the folder has no chat template, or it fails.
        """
        text = self._render([{"role": "user", "content": prompt}])
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def _render(self, messages: list[dict[str, str]]) -> str:
        """Fill the template in, which is a program of the folder's: in a sandbox."""
        source = self._settings.get("chat_template")
        if not isinstance(source, str):
            raise ModelError("The folder has no chat template: leave --chat out.")
        sandbox = _library("jinja2.sandbox").ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True
        )
        sandbox.globals["raise_exception"] = _refuse
        special = {
            name: _text_of(self._settings.get(name))
            for name in ("bos_token", "eos_token", "pad_token", "unk_token")
        }
        try:
            return str(
                sandbox.from_string(source).render(
                    messages=messages, add_generation_prompt=True, **special
                )
            )
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"The chat template fails: {error}") from error


@final
class TextStream:
    """Ids to text one by one: an id may end a character, or be a part of one."""

    def __init__(self, tokenizer: Any, stream: Any) -> None:
        """Begin with no ids."""
        self._tokenizer = tokenizer
        self._stream = stream

    def step(self, token: int) -> str:
        """Return the text that this id completes, which may be empty."""
        return self._stream.step(self._tokenizer, token) or ""


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        raise ModelError(
            f"Text needs the package {package!r}: pip install {package}. Without it, "
            "give ids: --ids."
        ) from error


def _settings(folder: Path) -> dict[str, Any]:
    """Read tokenizer_config.json; newer folders have the template in a file of its own."""
    path, template = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    settings = read_json(path) if path.exists() else {}
    if template.exists():
        settings["chat_template"] = template.read_text(encoding="utf-8")
    return settings


def _text_of(token: Any) -> str:
    """Return a special token, which is a text or an object that holds it."""
    if isinstance(token, dict):
        token = cast("dict[str, Any]", token).get("content")
    return str(token or "")


def _refuse(message: str) -> None:
    raise ModelError(f"The chat template refuses the conversation: {message}")
