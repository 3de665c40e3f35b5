"""Strategy `rows`: whole rows in a workgroup, through all stages that share them."""
