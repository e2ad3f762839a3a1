"""Entry point of ``python -m rebalance``: the command."""

import sys

from rebalance_verifier.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
