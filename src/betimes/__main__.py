"""`python -m betimes` is the command line."""

from betimes.cli import main

if __name__ == "__main__":
    main()
