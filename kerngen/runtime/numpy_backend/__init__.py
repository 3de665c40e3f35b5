"""The backend without a device: NumPy runs the references of kernels, captures included."""
