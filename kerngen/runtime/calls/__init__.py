"""How a kernel is called: checks, the plan of a call, its launch, and captures of calls."""
