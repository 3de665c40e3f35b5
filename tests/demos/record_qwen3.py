"""Record what transformers computes of a tiny Qwen3: tests/demos/qwen3.

    pip install torch transformers
    python tests/demos/record_qwen3.py

Gains are drawn, as ones would hide a forgotten one, and weights are wide, so that greedy
decoding doesn't repeat itself.  The logits are in float64.
"""

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

torch: Any = import_module("torch")
transformers: Any = import_module("transformers")

FOLDER = Path(__file__).parent / "qwen3"
PROMPT = 11
TOKENS = 24


def main() -> None:
    """Make the model, save it as bf16, and run what was saved."""
    torch.manual_seed(0)
    model = transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            hidden_size=24,
            intermediate_size=40,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            vocab_size=61,
            max_position_embeddings=64,
            tie_word_embeddings=True,
        )
    )
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter.uniform_(0.5, 1.5)
            else:
                parameter.normal_(0, 0.3)
    model.to(torch.bfloat16).save_pretrained(FOLDER)
    (FOLDER / "generation_config.json").unlink()
    # Loaded anew: a model that is converted would keep angles that were rounded to bf16.
    model = transformers.AutoModelForCausalLM.from_pretrained(
        FOLDER, dtype=torch.float64, attn_implementation="eager"
    )
    ids = torch.randint(0, 61, (1, PROMPT))
    with torch.no_grad():
        logits = model(ids).logits[0]
        tokens = model.generate(
            ids, max_new_tokens=TOKENS, do_sample=False, pad_token_id=0
        )
    print(len(set(tokens[0, PROMPT:].tolist())), "distinct tokens")
    np.savez(
        FOLDER / "expected.npz",
        ids=ids[0].numpy(),
        logits=logits.numpy(),
        tokens=tokens[0, PROMPT:].numpy(),
    )


if __name__ == "__main__":
    main()
