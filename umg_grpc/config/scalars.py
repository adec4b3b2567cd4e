"""Values that are written as text: sizes, durations, times, URLs, short names. What is wrong becomes a problem."""

import re
from datetime import UTC, datetime
from urllib.parse import SplitResult, parse_qsl, urlsplit

from umg_grpc.config.document import Document, Path
from umg_grpc.families import FAMILIES

UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
# gRPC's limit of a message is twice that of a body, and takes 31 bits.
LARGEST_BODY = 1023 * 1024**2
LARGEST_STORE = 1024 * 1024**4
LONGEST = 3650 * 86400

REDIS_PATH = re.compile(r"/?|/[0-9]{1,9}")
REDIS_OPTIONS = {
    "db": re.compile(r"[0-9]{1,9}"),
    "username": re.compile(r".+"),
    "password": re.compile(r".+"),
}
REDISS_OPTIONS = {
    **REDIS_OPTIONS,
    "ssl_ca_certs": re.compile(r".+"),
    "ssl_certfile": re.compile(r".+"),
    "ssl_keyfile": re.compile(r".+"),
    "ssl_cert_reqs": re.compile(r"none|optional|required"),
    "ssl_check_hostname": re.compile(r"true|false"),
}
"""What its client may be told behind a `?`; how long it waits and whom it asks again is the gateway's own."""

PRINTABLE = re.compile(r"[!-~]+")
FAMILY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def body_size(document: Document, path: Path, text: str) -> int:
    """Bytes of a request body, from `64MiB` or a plain number."""
    if not 1 <= (size := _size(text)) <= LARGEST_BODY:
        document.problem(path, "expected a number of bytes or a size like 64MiB, at most 1023MiB")
    return size


def store_size(document: Document, path: Path, text: str) -> int:
    """Bytes of what is kept, from `1GiB` or a plain number."""
    if not 1 <= (size := _size(text)) <= LARGEST_STORE:
        document.problem(path, "expected a number of bytes or a size like 1GiB, at most 1024TiB")
    return size


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", text)
    return int(match[1]) * UNITS.get(match[2], 0) if match else 0


def duration(document: Document, path: Path, text: str) -> int:
    """Seconds, from `30d`, `12h`, `15m`, `45s` or a plain number."""
    match = re.fullmatch(r"([0-9]{1,10})\s*([smhd]?)", text)
    seconds = int(match[1]) * SECONDS[match[2]] if match else 0
    if not 1 <= seconds <= LONGEST:
        document.problem(path, "expected a time like 30d, 12h, 15m or seconds, at most 3650d")
    return seconds


def family(document: Document, path: Path, text: str | None) -> str | None:
    """A family with rules, or any other short name, which has none. `famo` is a slip of the pen."""
    meant = next((known for known in FAMILIES if text is not None and text.lower() == known.lower()), text)
    if meant != text:
        document.problem(path, f"expected `{meant}`, in this spelling")
    elif text is not None and not FAMILY.fullmatch(text):
        document.problem(path, "expected a family such as famG: up to 32 letters, digits, `.`, `_` or `-`")
    return text


def time(document: Document, path: Path, text: str | None) -> datetime | None:
    """A date, a time (UTC unless it says otherwise) or Unix seconds."""
    if text is None:
        return None
    try:
        moment = datetime.fromtimestamp(int(text), UTC) if text.isdecimal() else datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        document.problem(path, "expected a date (2024-11-01), an ISO 8601 time or Unix seconds")
        return None


def url(document: Document, path: Path, text: str, *, user: bool = False) -> str:
    """The URL without a slash at its end. Credentials in it are taken only where `user` says so."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and PRINTABLE.fullmatch(text)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or "?" in text or "#" in text:
        document.problem(path, "expected a URL, http:// or https:// with a host and without a query")
    elif "@" in parts.netloc and not user:
        document.problem(path, "expected a URL without credentials; a key goes into `api_key`")
    return text.rstrip("/")


def scheme(text: str) -> str:
    """Of a URL; empty for what is none."""
    try:
        return urlsplit(text).scheme
    except ValueError:
        return ""


def redis_url(document: Document, path: Path, text: str) -> str:
    """The URL of a Redis server, which its client understands as a whole."""
    try:
        parts = urlsplit(text)
        good = "#" not in text and PRINTABLE.fullmatch(text) and _is_redis_place(parts)
    except ValueError:  # also of a port that is no number
        document.problem(path, "expected redis://HOST:PORT/NUMBER, rediss:// or unix://PATH")
        return text
    options = REDISS_OPTIONS if parts.scheme == "rediss" else REDIS_OPTIONS
    if not good:
        document.problem(path, "expected redis://HOST:PORT/NUMBER, rediss:// or unix://PATH")
    elif not all(
        name in options and options[name].fullmatch(value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ):
        document.problem(path, f"expected nothing behind `?` but good values of {', '.join(options)}")
    return text


def _is_redis_place(parts: SplitResult) -> bool:
    """Raises ValueError for a port that is none."""
    if parts.scheme == "unix":
        return not parts.hostname and parts.port is None and parts.path not in {"", "/"}
    good = parts.scheme in {"redis", "rediss"} and parts.hostname and parts.port != 0
    return bool(good and REDIS_PATH.fullmatch(parts.path))
