"""Who may come in: a token, browsers that were sent by nobody else, and names that mean this machine."""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from bacs.serve.refusal import Refused

OPEN = ("/v2/health/live", "/v2/health/ready")
"""What answers without a token, so that a supervisor needs none. It says yes or no, and nothing else."""

SHORTEST = 16
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


@dataclass(frozen=True)
class Access:
    """The token, whether all requests need it or only control does, and what this machine may be called (None: any)."""

    token: str
    required: bool
    hosts: frozenset[str] | None = None

    def knows(self, given: str) -> bool:
        """Compares in constant time: how long it takes tells nothing of how much was right."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of what a browser that has shown the token shows afterwards; neither gives it away.

        Browsers do not tell the ports of a machine apart: two services must not write to one name.
        """
        digest = hmac.new(self.token.encode(), b"bacs serve page", hashlib.sha256).hexdigest()
        return f"bacs-{digest[:8]}", digest[8:]

    def admits(self, headers: Mapping[str, str]) -> bool:
        """Whether the request shows the token, or the cookie of a browser that has."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.knows(given.strip())
        name, value = self.cookie
        try:
            morsel = SimpleCookie(headers.get("cookie", "")).get(name)
        except CookieError:
            return False
        return morsel is not None and hmac.compare_digest(morsel.value.encode(), value.encode())

    def check(self, method: str, path: str, headers: Mapping[str, str]) -> None:
        """Raises a Refused unless this request may go on."""
        host = headers.get("host", "")
        if self.hosts is not None and _name(host) not in self.hosts:
            # A page of elsewhere may have a name that leads to this machine; its requests then look like our own.
            raise Refused(421, "host must be the name of this machine")
        _check_origin(method, path, headers, host)
        if path in OPEN or path == "/login":
            return
        if (self.required or path.startswith("/control/")) and not self.admits(headers):
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN")


def _check_origin(method: str, path: str, headers: Mapping[str, str], host: str) -> None:
    """Refuses what another site makes a browser send. Programs send neither header, and are not meant."""
    site = headers.get("sec-fetch-site", "none")
    visits = method == "GET" and path == "/" and headers.get("sec-fetch-mode") == "navigate"
    if site not in ("none", "same-origin") and not visits:
        raise Refused(403, "requests by other sites are refused")
    origin = headers.get("origin")
    if origin is not None and method not in SAFE_METHODS and urlsplit(origin).netloc.lower() != host.lower():
        raise Refused(403, "requests by other sites are refused")


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def access_for(host: str, token_file: Path | None, *, no_token: bool) -> tuple[Access, bool]:
    """The access rules, and whether their token was made up here and has to be told."""
    if token_file is not None and no_token:
        raise ValueError("no_token must be left out with token_file, which has one")
    local = is_loopback(host)
    hosts = frozenset({"localhost", "127.0.0.1", "::1", host}) if local else None
    if token_file is not None:
        return Access(_read_token(token_file), required=True, hosts=hosts), False
    if not local and not no_token:
        raise ValueError(
            f"host {host} can be reached by others: token_file names a file with a token that they need, "
            "no_token says that there is to be none"
        )
    return Access(secrets.token_urlsafe(24), required=False, hosts=hosts), True


def _read_token(file: Path) -> str:
    try:
        token = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ValueError(f"token_file must be a text file, {file} cannot be read: {reason}") from error
    if len(token) < SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError(f"token_file must hold one word of {SHORTEST} ASCII characters or more, {file} does not")
    return token
