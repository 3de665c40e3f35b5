"""What programs mean: small kernels for every rule of the language, against NumPy."""
