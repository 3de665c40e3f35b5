"""What the equations mean: their values in float64, with bounds of the error."""
