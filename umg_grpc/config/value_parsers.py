"""Parsers of text values in the config: sizes, durations, times, URLs, addresses. They report invalid values."""

import re
from datetime import UTC, datetime
from urllib.parse import SplitResult, parse_qsl, urlsplit

from umg_grpc.base.time_units import UNIT_SECONDS
from umg_grpc.config.network_addresses import Address
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.families.image_model_rules import IMAGE_FAMILIES
from umg_grpc.knowledge.families.text_model_rules import TEXT_FAMILIES
from umg_grpc.knowledge.families.video_model_rules import VIDEO_FAMILIES

BYTE_UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
BYTE_UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
# The gRPC message limit is twice the body limit, and must fit in 31 bits.
LARGEST_BODY = 1023 * 1024**2
LARGEST_STORE = 1024 * 1024**4
MAX_SECONDS = 3650 * 86400

REDIS_PATH = re.compile(r"/?|/[0-9]{1,9}")
REDIS_OPTIONS = {"db": re.compile(r"[0-9]{1,9}"), "username": re.compile(r".+"), "password": re.compile(r".+")}
REDISS_OPTIONS = {
    **REDIS_OPTIONS,
    "ssl_ca_certs": re.compile(r".+"),
    "ssl_certfile": re.compile(r".+"),
    "ssl_keyfile": re.compile(r".+"),
    "ssl_cert_reqs": re.compile(r"none|optional|required"),
    "ssl_check_hostname": re.compile(r"true|false"),
}
"""Allowed query parameters of Redis URLs. Timeouts and retries are set by the gateway, not by the URL."""

PRINTABLE_TEXT = re.compile(r"[!-~]+")
FAMILY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,31}")


def body_size(document: YamlDocument, path: Path, text: str) -> int:
    """Parse a body size, for example `64MiB` or a plain number of bytes. Return bytes."""
    if not 1 <= (size := _size(text)) <= LARGEST_BODY:
        document.problem(path, "expected a number of bytes or a size like 64MiB, at most 1023MiB")
    return size


def store_size(document: YamlDocument, path: Path, text: str) -> int:
    """Parse a storage size, for example `1GiB` or a plain number of bytes. Return bytes."""
    if not 1 <= (size := _size(text)) <= LARGEST_STORE:
        document.problem(path, "expected a number of bytes or a size like 1GiB, at most 1024TiB")
    return size


def _size(text: str) -> int:
    match = re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", text)
    return int(match[1]) * BYTE_UNITS.get(match[2], 0) if match else 0


def duration(document: YamlDocument, path: Path, text: str) -> int:
    """Parse a duration, for example `30d`, `12h`, `15m`, `45s` or a plain number of seconds. Return seconds."""
    match = re.fullmatch(r"([0-9]{1,10})\s*([smhd]?)", text)
    seconds = int(match[1]) * UNIT_SECONDS[match[2]] if match else 0
    if not 1 <= seconds <= MAX_SECONDS:
        document.problem(path, "expected a time like 30d, 12h, 15m or seconds, at most 3650d")
    return seconds


def family(document: YamlDocument, path: Path, text: str | None) -> str | None:
    """Return the name of a model family unchanged, even if it is unknown. Report invalid characters, and a known family
    with a wrong letter case, for example `famo`.
    """
    families = (*TEXT_FAMILIES, *IMAGE_FAMILIES, *VIDEO_FAMILIES)
    spelling = next((known for known in families if text is not None and text.lower() == known.lower()), text)
    if spelling != text:
        document.problem(path, f"expected `{spelling}`, in this spelling")
    elif text is not None and not FAMILY_NAME.fullmatch(text):
        document.problem(path, "expected a family such as famG: up to 32 letters, digits, `.`, `_` or `-`")
    return text


def time(document: YamlDocument, path: Path, text: str | None) -> datetime | None:
    """Parse a date, an ISO 8601 time (UTC without an offset) or Unix seconds to a time in UTC. Report invalid text."""
    if text is None:
        return None
    try:
        moment = datetime.fromtimestamp(int(text), UTC) if text.isdecimal() else datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        document.problem(path, "expected a date (2024-11-01), an ISO 8601 time or Unix seconds")
        return None


def url(document: YamlDocument, path: Path, text: str, *, user: bool = False) -> str:
    """Return a URL without trailing slashes. Report an invalid one. `user`: whether it may contain credentials."""
    try:
        parts = urlsplit(text)
        is_valid = (
            parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and PRINTABLE_TEXT.fullmatch(text)
        )
    except ValueError:
        is_valid = False
    if not is_valid or parts.query or parts.fragment or "?" in text or "#" in text:
        document.problem(path, "expected a URL, http:// or https:// with a host and without a query")
    elif "@" in parts.netloc and not user:
        document.problem(path, "expected a URL without credentials; a key goes into `api_key`")
    return text.rstrip("/")


def address(document: YamlDocument, path: Path, text: str) -> Address | None:
    """Parse `HOST:PORT` (an IPv6 host is in brackets). Return None, with a report, if it is invalid."""
    try:
        return Address.parse(text)
    except ValueError:
        document.problem(path, "expected HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464; port 0 is any free one")
        return None


def token(document: YamlDocument, path: Path, text: str) -> str:
    """Return a secret for `authorization: Bearer SECRET`. Report characters that a header cannot contain."""
    if PRINTABLE_TEXT.fullmatch(text) is None:
        document.problem(path, "expected ASCII characters without spaces, since it is sent in a header")
    return text


def scheme(text: str) -> str:
    """Return the scheme of a URL; "" for an invalid URL."""
    try:
        return urlsplit(text).scheme
    except ValueError:
        return ""


def redis_url(document: YamlDocument, path: Path, text: str) -> str:
    """Return the URL of a Redis server unchanged. Report an invalid URL or query parameter."""
    try:
        parts = urlsplit(text)
        is_valid = "#" not in text and PRINTABLE_TEXT.fullmatch(text) and _is_redis_address(parts)
    except ValueError:  # raised also for an invalid port
        document.problem(path, "expected redis://HOST:PORT/NUMBER, rediss:// or unix://PATH")
        return text
    options = REDISS_OPTIONS if parts.scheme == "rediss" else REDIS_OPTIONS
    if not is_valid:
        document.problem(path, "expected redis://HOST:PORT/NUMBER, rediss:// or unix://PATH")
    elif not all(
        name in options and options[name].fullmatch(value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ):
        document.problem(path, f"expected nothing behind `?` but good values of {', '.join(options)}")
    return text


def _is_redis_address(parts: SplitResult) -> bool:
    if parts.scheme == "unix":
        return not parts.hostname and parts.port is None and parts.path not in {"", "/"}
    is_valid = parts.scheme in {"redis", "rediss"} and parts.hostname and parts.port != 0
    return bool(is_valid and REDIS_PATH.fullmatch(parts.path))
