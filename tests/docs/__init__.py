"""The documentation, held to what it says: every block of code is run, or judged."""
