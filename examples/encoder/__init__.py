"""A sentence encoder in BERT's form, such as all-MiniLM-L6-v2: texts to vectors.

    python -m examples.encoder FOLDER "how is a kernel scheduled?"

searches the pages of docs/ by meaning; from Python:

    encoder = load("FOLDER")
    vectors = encoder.encode(["one text", "another"])  # one row each, of length 1
"""

from examples.encoder.loading import load
from examples.encoder.model import Encoder, Sizes
from examples.encoder.search import Hit, passages, search
from examples.qwen3.errors import ModelError

__all__ = ["Encoder", "Hit", "ModelError", "Sizes", "load", "passages", "search"]
