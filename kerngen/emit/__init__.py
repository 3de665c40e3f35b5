"""Print what a build leaves behind: Python bindings with their NumPy references."""
