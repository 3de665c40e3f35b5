"""kerngen: index equations to WGSL, typed Python bindings and a NumPy reference."""

__version__ = "0.1.0"
