"""Entry point of ``python -m rebalance``: the command."""

import sys

from rebalance.gate.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
