"""Where the command begins. It loads nothing itself, so that Ctrl-C while the rest loads is one line too."""

import sys


def main() -> int:
    """Run the command and return its exit code."""
    try:
        from rebalance_verifier.cli.main import main as run

        return run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
