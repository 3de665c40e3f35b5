"""`python -m kerngen` is `kerngen`."""

from kerngen.cli import main

if __name__ == "__main__":
    main(prog_name="kerngen")
