"""One call of a kernel: its checks, its plan, its launch, and captures of many calls."""
