"""Values that calls take: element types, structs, vectors, and their bytes."""
