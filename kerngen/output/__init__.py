"""The generated files on disk: written whole, pruned, checked."""
