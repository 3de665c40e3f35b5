"""What is wrong where a text is no program: recognisers, hints, and other languages."""
