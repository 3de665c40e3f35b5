"""Strategy `ragged`: reductions over ranges that are read, as the entries of sparse rows."""
