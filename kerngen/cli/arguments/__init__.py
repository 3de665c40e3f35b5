"""Arguments and options of the command line, which several commands share."""
