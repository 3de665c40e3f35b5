"""How notebooks show tensors, kernels and modules."""
