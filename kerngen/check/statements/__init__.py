"""The statements of a kernel: what they write, and in which order."""
