"""``python -m rebalance``: the command. A namespace, with this module right below it."""

import sys

from rebalance.gate.cli.start import main

if __name__ == "__main__":
    sys.exit(main())
