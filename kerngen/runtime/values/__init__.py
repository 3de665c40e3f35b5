"""Types and values of calls: element types, structs, vectors, and their bytes."""
