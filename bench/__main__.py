"""`python -m bench [recording] [context] [outbox]`: all of them, or those that are named."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from bench import context, outbox, recording
from bench.tables import Table

BENCHES: dict[str, Callable[[], list[Table]]] = {
    "recording": recording.run,
    "context": context.run,
    "outbox": outbox.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    names = parser.parse_args().names or list(BENCHES)
    if unknown := set(names) - set(BENCHES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(BENCHES)}")
    for name in names:
        begun = time.monotonic()
        for table in BENCHES[name]():
            table.show()
        print(f"({name} took {time.monotonic() - begun:.0f} s)")


if __name__ == "__main__":
    main()
