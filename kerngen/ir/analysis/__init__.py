"""Analyses of expressions: signs, ranges, affine forms, reads and conditions."""
