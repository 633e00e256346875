"""What a request must be before it reaches a study: from whom, from where, and how large.

The service may listen on a machine whose user also reads strange pages. A page elsewhere must not
reach it: neither by a request of its own (Origin), nor under a name of its own that resolves to
this machine (Host, DNS rebinding).
"""

from __future__ import annotations

import functools
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .problems import Refused

#: Bytes of a body, at most.
MOST_BYTES = 8 * 2**20
#: Sent with every answer.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@functools.lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether a name or address is that of this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Guard:
    """Which requests are let through.

    Attributes
    ----------
    token
        What a request must bear, or None.
    loopback
        Whether the service listens on this machine only.
    read_only
        Whether nothing may be changed.
    """

    token: str | None = None
    loopback: bool = True
    read_only: bool = False

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse a request by its method and headers, whatever it asks for."""
        host = headers.get("host", "")
        if self.loopback and not is_loopback(_name(host)):
            raise Refused(
                403,
                "The host is not this machine",
                f"Host {host!r:.100}: this service listens on this machine only. Use "
                "http://127.0.0.1 or http://localhost, or start it with --host and a token",
            )
        origin = headers.get("origin")
        elsewhere = origin is not None and urlsplit(origin).netloc != host
        if elsewhere or headers.get("sec-fetch-site") == "cross-site":
            raise Refused(
                403,
                "Another site asks",
                f"Origin {origin!r:.100}: pages of other sites may not use this service",
            )
        if method in ("GET", "HEAD"):
            return
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refused(
                415,
                "The body must be JSON",
                f"Content-Type {kind!r:.80}: give application/json (curl: --json, or "
                "-H 'Content-Type: application/json')",
            )

    def check_change(self) -> None:
        """Refuse any change of a service that is only for reading."""
        if self.read_only:
            raise Refused(
                403,
                "This service is for reading",
                "it was started with --read-only: start it without that to change studies",
            )

    def check_token(self, headers: Mapping[str, str]) -> None:
        """Refuse a request without the token. The comparison takes the same time for any."""
        if self.token is None:
            return
        given = headers.get("authorization", "").removeprefix("Bearer ").strip()
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            raise Refused(
                401,
                "A token is needed",
                "send the token that `partita serve` printed when it started: Authorization: "
                "Bearer TOKEN",
            )


def _name(host: str) -> str:
    """The host of a Host header, without its port."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]
