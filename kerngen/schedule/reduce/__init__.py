"""Strategy `reduce`: reductions by many lanes, along rows or along columns."""
