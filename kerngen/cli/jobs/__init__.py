"""Several processes, and the adapters that they use."""
