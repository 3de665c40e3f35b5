"""The Python output of a build: bindings with their NumPy references."""
