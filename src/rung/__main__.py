"""`python -m rung` is the command `rung`."""

from rung.cli import main

main()
