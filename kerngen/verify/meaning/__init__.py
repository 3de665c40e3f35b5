"""The oracle: values of equations in float64, with bounds of f32 errors."""
