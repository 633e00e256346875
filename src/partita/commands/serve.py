"""`partita serve`: studies over HTTP, and a page that shows them live."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from partita._optional import require
from partita.errors import InvalidInput

from .shared import guarded

_EPILOG = """example: partita serve studies       then open http://127.0.0.1:8420
         curl --json '{"name": "tune", "space": {"bounds": [[0, 1]]}}' http://127.0.0.1:8420/studies
         curl --json '{}' http://127.0.0.1:8420/studies/tune/ask
         curl --json '{"number": 0, "value": 0.31}' http://127.0.0.1:8420/studies/tune/tell"""


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "serve studies over HTTP, with a page that shows them live"
    parser = commands.add_parser(
        "serve",
        help=text,
        description=text,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "places",
        metavar="FOLDER or FILE",
        nargs="*",
        default=["."],
        help="a folder of studies, in which new ones are created (.), or files of studies",
    )
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="(127.0.0.1: this machine only)")
    add("--port", type=int, default=8420, metavar="N", help="(8420); 0 takes a free one")
    add("--read-only", action="store_true", help="show studies, and change none")
    add(
        "--durability",
        choices=("process", "power"),
        default="process",
        help="what an answered request survives: a crash of the process (process), or a power cut",
    )
    parser.set_defaults(run=run)


@guarded
def run(options: argparse.Namespace) -> int:
    """Serve until told to end."""
    require("uvicorn")
    require("starlette")
    from partita.service.guards import Guard, is_loopback
    from partita.service.server import serve, token_for
    from partita.service.shelf import Shelf

    if not 0 <= options.port <= 65535:
        raise InvalidInput(f"--port {options.port}: give a number from 0 to 65535")
    host = options.host
    loopback, token = is_loopback(host), token_for(host)
    shelf = Shelf([Path(place) for place in options.places], options.durability)

    def started(port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        mark = "" if token is None else f"/#token={token}"
        sys.stdout.write(f"serving on http://{shown}:{port}{mark}\n")
        if token is not None:
            sys.stdout.write("requests must have the header: Authorization: Bearer TOKEN\n")
        sys.stdout.flush()

    return serve(shelf, host, options.port, Guard(token, loopback, options.read_only), started)
