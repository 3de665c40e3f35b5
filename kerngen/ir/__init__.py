"""The typed kernel, and the passes over it."""
