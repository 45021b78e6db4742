"""The command ``unslant``; ``python -m unslant`` is the same."""

import sys


def main() -> None:
    """Run the command that was typed, also if Ctrl-C comes before the command line is imported."""
    try:
        from unslant.cli import main as run
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
