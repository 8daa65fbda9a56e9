"""`python -m sluice` is the command too, where no script of the environment is on the path."""

from sluice.cli import main

if __name__ == "__main__":
    main()
