"""Strategy `gemv`: products with a vector, or with few rows."""
