"""The NumPy references of kernels: equations printed as Python."""
