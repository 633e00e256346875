"""`python -m partita`: the command line."""

import sys

from partita.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
