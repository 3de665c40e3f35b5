"""Qwen3 and Llama, from a folder in Hugging Face's layout or a GGUF file: load and generate.

    python -m examples.qwen3 FOLDER --prompt "..."

or from Python:

    model, tokenizer = load("FOLDER")
    print(generate(model, tokenizer, "Once upon a time", max_tokens=50))
"""

from examples.qwen3.config import Config
from examples.qwen3.errors import ModelError
from examples.qwen3.generation import Piece, generate, generate_ids, stream_generate
from examples.qwen3.loading import load, load_model
from examples.qwen3.model import Cache, Model
from examples.qwen3.sampling import Sampler, greedy, make_sampler
from examples.qwen3.text import Tokenizer

__all__ = [
    "Cache",
    "Config",
    "Model",
    "ModelError",
    "Piece",
    "Sampler",
    "Tokenizer",
    "generate",
    "generate_ids",
    "greedy",
    "load",
    "load_model",
    "make_sampler",
    "stream_generate",
]
