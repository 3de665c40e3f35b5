"""Fine-tune a model by LoRA, on the docstrings of Python's standard library.

    python -m examples.qwen3.lora FOLDER --checkpoint run.safetensors --export TUNED

`adapters` are the parameters, `network` the decoder in training form, `training` the steps,
`run` what is saved between them, `export` the tuned model, and `__main__` the command.  Text,
schedule, record and picture are those of `examples.characters`.
"""
