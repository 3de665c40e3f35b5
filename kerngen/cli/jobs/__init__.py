"""Commands in several processes, and the adapters that these use."""
