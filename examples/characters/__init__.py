"""A character-level transformer, trained on the docstrings of Python's standard library.

    python -m examples.characters --checkpoint run.safetensors --plot run.png

`data` is the text, `model` the network, `training` the steps, `sampling` what the network
writes, `record` and `picture` how the losses fell, and `__main__` what you see of it all.
"""
