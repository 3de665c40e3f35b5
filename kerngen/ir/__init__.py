"""The typed kernel (IR), and the passes over it."""
