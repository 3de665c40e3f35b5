"""Strategy `gemm`: matrix products in tiles."""
