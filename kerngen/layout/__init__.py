"""WGSL's memory layout rules, and structs laid out by them."""
