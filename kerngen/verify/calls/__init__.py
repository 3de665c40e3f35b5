"""The calls to verify: lengths and arguments, drawn or fixed, and their simplification."""
