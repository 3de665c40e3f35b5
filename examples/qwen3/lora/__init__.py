"""Fine-tune a model by LoRA, on the docstrings of Python's standard library.

    python -m examples.qwen3.lora FOLDER --checkpoint run.safetensors --export TUNED

`adapters` are the parameters, and `network` the decoder in training form.
"""
