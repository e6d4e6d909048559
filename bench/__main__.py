"""`python -m bench [NAME] [options]`: one benchmark, or all that need no data of their own."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from bench import chinese, context, ingest, latency, locomo, outbox, recording
from bench.tables import Table

BENCHES: dict[str, Callable[[], Iterable[Table]]] = {
    "recording": recording.run,
    "context": context.run,
    "outbox": outbox.run,
    "chinese": chinese.run,
    "ingest": ingest.run,
    "latency": latency.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    names = parser.add_subparsers(dest="name", metavar="NAME")
    for name, run in BENCHES.items():
        named = names.add_parser(name, help=sys.modules[run.__module__].__doc__)
        if name == "latency":
            named.add_argument("--records", type=int, nargs="+", default=list(latency.RECORDS))
    on_locomo = names.add_parser("locomo", help="needs the data set, which is not part of this repository")
    on_locomo.add_argument("file", type=Path)
    on_locomo.add_argument("--split", action="store_true", help="halves of the conversations apart, too")
    told = parser.parse_args()
    if told.name == "locomo":
        _show("locomo", lambda: locomo.run(told.file, split=told.split))
    elif told.name == "latency":
        _show("latency", lambda: latency.run(told.records))
    else:
        for name in [told.name] if told.name else BENCHES:
            _show(name, BENCHES[name])


def _show(name: str, run: Callable[[], Iterable[Table]]) -> None:
    begun = time.monotonic()
    for table in run():
        table.show()
    print(f"({name} took {time.monotonic() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
