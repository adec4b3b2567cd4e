"""The file's contract: which keys there are, what each takes, and what must fit together."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec

from umg_grpc.config.document import ConfigError, Document, Path, Value
from umg_grpc.config.values import (
    Auth,
    BearerAuth,
    Channel,
    ChannelModel,
    Config,
    Cors,
    HeaderAuth,
    Log,
    ModelInfo,
    NoAuth,
    Seconds,
    Timeout,
    Written,
)

SERVED_PROTOCOLS = ("chat", "local")
# Parts of the contract that come with what makes them work; until then they are refused, by a message of their own.
PROTOCOLS = frozenset({"chat", "responses", "messages", "native", "local", "sandbox"}) | {
    *("embeddings", "native_embeddings", "rerank"),
    *("images", "ark_images", "dashscope_images", "native_images"),
    *("vidA", "vidB", "vidC", "vidD", "vidE", "vidF", "vidG"),
}
LATER_PROTOCOLS = PROTOCOLS.difference(SERVED_PROTOCOLS)
LATER_KEYS = frozenset({"redis", "shared_objects", "price", "capabilities"})
LATER_AUTH = frozenset({"access_key", "service_account"})

CHOICES = {
    "kind": ("bearer", "header", "none"),
    "level": get_args(Log.__annotations__["level"]),
    "format": get_args(Log.__annotations__["format"]),
}

UNITS = {"": 1, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}
# gRPC's limit of a message is twice that of a body, and takes 31 bits.
LARGEST_BODY = 1023 * 1024**2

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MODEL_ID = re.compile(r"[^\s*\x00-\x1f\x7f]{1,256}")  # no `*`: it is the wildcard of a key's model patterns
PRINTABLE = re.compile(r"[!-~]+")
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[ -~\t]*")
FRAMING_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})
ORIGIN = re.compile(r"\*|https?://[^\s/?#]+")

STEP = re.compile(r"\.(?P<key>\w+)|\[(?P<index>\d+)\]")
MISSING = re.compile(r"Object missing required field `([^`]*)`")
UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
WORDS = {"str": "text", "int": "a whole number", "float": "a number", "array": "a list", "object": "a mapping"}

BUILT_IN = """\
channels:
  - name: local
    protocols: [local]
    models: [smollm2-135m-instruct]
models:
  smollm2-135m-instruct: {created: 2024-11-01, display_name: SmolLM2 135M Instruct}
"""


class _ModelEntry(Written, frozen=True):
    id: str
    upstream: str | None = None
    family: str | None = None


class _ChannelEntry(Written, frozen=True):
    name: str
    protocols: Annotated[list[str], msgspec.Meta(min_length=1)]
    models: Annotated[list[str | _ModelEntry], msgspec.Meta(min_length=1)]
    base_url: str | None = None
    api_key: str | list[str] | None = None
    auth: Auth | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    proxy: str | None = None
    ca_file: str | None = None
    priority: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] = 0
    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1
    timeout: Seconds | Timeout = Timeout()


class _InfoEntry(Written, frozen=True):
    owned_by: str | None = None
    display_name: str | None = None
    created: str | None = None
    family: str | None = None


class _File(Written, frozen=True):
    channels: Annotated[list[object], msgspec.Meta(min_length=1)]
    models: dict[str, object] = msgspec.field(default_factory=dict)
    public_url: str | None = None
    secret: Annotated[str, msgspec.Meta(min_length=16)] | None = None
    database: str = "sqlite"
    cors: Cors = Cors()
    body_limit: str = "64MiB"
    drain: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 30
    log: Log = Log()


Entry = TypeVar("Entry", bound=Written)


def built_in() -> Config:
    """The config of a start without a file: the embedded model alone."""
    return parse(BUILT_IN, "built-in config", {})


def parse(text: str, filename: str, environment: Mapping[str, str]) -> Config:
    """The config that the text says. `${NAME}` in a value stands for a variable of the environment, `$${` for `${`.

    Relative paths in it are taken from the file's own directory. Raises ConfigError, which has all that must be
    corrected, as far as one mistake does not hide another.
    """
    document = Document(text, filename, environment)
    config = _config(document, PurePath(filename).parent)
    if config is None or document.problems:
        raise ConfigError(document.problems)
    return config


def _config(document: Document, directory: PurePath) -> Config | None:
    """All parts are read, whatever is wrong with one of them, so that a problem in each is found."""
    file = _entry(document, (), document.value, _File)
    values = document.value if isinstance(document.value, dict) else {}
    notices = list[str]()
    channels = tuple(_channels(document, values.get("channels"), directory, notices))
    served = {model.id for channel in channels for model in channel.models}
    written = values.get("channels")
    complete = isinstance(written, list) and len(written) == len(channels)
    models = dict(_models(document, values.get("models"), served if complete else None))
    if file is None:
        return None
    for position, origin in enumerate(file.cors.origins):
        if not ORIGIN.fullmatch(origin):
            document.problem(("cors", "origins", position), "expected an origin (https://app.example) or `*`")
    if file.database != "sqlite" and urlsplit(file.database).scheme not in {"postgresql", "postgres"}:
        document.problem(("database",), "expected `sqlite` or postgresql://USER:PASSWORD@HOST:PORT/DATABASE")
    return Config(
        channels=channels,
        models=MappingProxyType(models),
        public_url=_url(document, ("public_url",), file.public_url) if file.public_url is not None else None,
        secret=file.secret,
        database=file.database,
        cors=file.cors,
        body_limit=_size(document, ("body_limit",), file.body_limit),
        drain=file.drain,
        log=file.log,
        notices=tuple(notices),
    )


def _channels(document: Document, values: Value, directory: PurePath, notices: list[str]) -> Iterator[Channel]:
    """The channels, less those that have no meaning at all for their problems."""
    names: set[str] = set()
    for position, value in enumerate(values if isinstance(values, list) else []):
        path: Path = ("channels", position)
        entry = _entry(document, path, value, _ChannelEntry)
        if entry is None:
            continue
        if not NAME.fullmatch(entry.name):
            document.problem((*path, "name"), "expected up to 64 letters, digits, `.`, `_` or `-`")
        elif entry.name in names:
            document.problem((*path, "name"), f"expected a name of its own; `{entry.name}` is taken")
        names.add(entry.name)
        protocols = _protocols(document, (*path, "protocols"), entry.protocols)
        later = [name for name in entry.protocols if protocols and name in LATER_PROTOCOLS]
        notices.extend(f"channel {entry.name}: {name} is not served by this version" for name in later)
        models = tuple(_channel_models(document, (*path, "models"), entry.models))
        if "local" in entry.protocols:
            yield _local_channel(document, path, entry, models)
        else:
            yield _http_channel(document, path, entry, protocols, models, directory)


def _protocols(document: Document, path: Path, protocols: list[str]) -> tuple[str, ...]:
    """Those that are served. Beside one of them a later one is no mistake: the file serves a newer version as well."""
    served = tuple(protocol for protocol in protocols if protocol in SERVED_PROTOCOLS)
    for position, protocol in enumerate(protocols):
        if protocol not in SERVED_PROTOCOLS and not (served and protocol in LATER_PROTOCOLS):
            why = "is not served by this version" if protocol in LATER_PROTOCOLS else "is not a protocol"
            document.problem((*path, position), f"expected {_any_of(SERVED_PROTOCOLS)}; `{protocol}` {why}")
        elif protocol in protocols[:position]:
            document.problem((*path, position), f"expected `{protocol}` once")
    if "local" in protocols and len(protocols) > 1:
        document.problem(path, "expected `local` alone: it is not reached over the network")
    return served


def _channel_models(document: Document, path: Path, entries: list[str | _ModelEntry]) -> Iterator[ChannelModel]:
    ids: set[str] = set()
    for position, written in enumerate(entries):
        entry = _ModelEntry(id=written) if isinstance(written, str) else written
        model = ChannelModel(entry.id, entry.id if entry.upstream is None else entry.upstream, entry.family)
        if not (MODEL_ID.fullmatch(model.id) and MODEL_ID.fullmatch(model.upstream)):
            document.problem((*path, position), "expected a model id: up to 256 characters without spaces or `*`")
        elif model.id in ids:
            document.problem((*path, position), f"expected an id of its own in this channel; `{model.id}` is taken")
        ids.add(model.id)
        yield model


def _local_channel(document: Document, path: Path, entry: _ChannelEntry, models: tuple[ChannelModel, ...]) -> Channel:
    for key in ("base_url", "api_key", "auth", "headers", "proxy", "ca_file"):
        if getattr(entry, key):
            document.problem((*path, key), "expected only for an upstream on the network; a `local` channel has none")
    return Channel(
        name=entry.name,
        protocols=tuple(entry.protocols),
        models=models,
        priority=entry.priority,
        weight=entry.weight,
        timeout=_timeout(entry.timeout),
    )


def _http_channel(
    document: Document,
    path: Path,
    entry: _ChannelEntry,
    protocols: tuple[str, ...],
    models: tuple[ChannelModel, ...],
    directory: PurePath,
) -> Channel:
    if entry.base_url is None:
        document.problem((*path, "base_url"), "expected a URL, e.g. https://provider.example/v1")
    return Channel(
        name=entry.name,
        protocols=protocols,
        models=models,
        base_url=_url(document, (*path, "base_url"), entry.base_url) if entry.base_url is not None else "",
        api_keys=_api_keys(document, path, entry),
        auth=_auth(entry),
        headers=MappingProxyType(_headers(document, (*path, "headers"), entry)),
        proxy=_url(document, (*path, "proxy"), entry.proxy, user=True) if entry.proxy is not None else None,
        ca_file=str(directory / entry.ca_file) if entry.ca_file else None,
        priority=entry.priority,
        weight=entry.weight,
        timeout=_timeout(entry.timeout),
    )


def _auth(entry: _ChannelEntry) -> Auth:
    """What was written, else the usual: a Bearer if there is a key."""
    return entry.auth or (NoAuth() if entry.api_key is None else BearerAuth())


def _api_keys(document: Document, path: Path, entry: _ChannelEntry) -> tuple[str, ...]:
    keys = (entry.api_key,) if isinstance(entry.api_key, str) else tuple(entry.api_key or ())
    wants_key = not isinstance(_auth(entry), NoAuth)
    if wants_key and not keys:
        document.problem((*path, "api_key"), "expected a key, or a list of at least one")
    elif keys and not wants_key:
        document.problem((*path, "api_key"), "expected no key beside `auth: {kind: none}`")
    if not all(PRINTABLE.fullmatch(key) for key in keys):
        document.problem((*path, "api_key"), "expected printable characters without spaces or line ends")
    return keys


def _headers(document: Document, path: Path, entry: _ChannelEntry) -> dict[str, str]:
    auth = _auth(entry)
    taken = {"authorization"} if isinstance(auth, BearerAuth) else set()
    if isinstance(auth, HeaderAuth):
        taken = {auth.header.lower()}
        if not HEADER_NAME.fullmatch(auth.header) or taken & FRAMING_HEADERS:
            document.problem((*path[:-1], "auth", "header"), "expected the name of a header, e.g. x-api-key")
    for name, value in entry.headers.items():
        if not HEADER_NAME.fullmatch(name) or name.lower() in FRAMING_HEADERS:
            document.problem((*path, name), "expected a header that is not HTTP's own framing")
        elif name.lower() in taken:
            document.problem((*path, name), "expected another header: this one carries the key")
        elif not HEADER_VALUE.fullmatch(value):
            document.problem((*path, name), "expected printable ASCII on one line")
    return entry.headers


def _timeout(written: float | Timeout) -> Timeout:
    return written if isinstance(written, Timeout) else Timeout(first_byte=written)


def _models(document: Document, values: Value, served: set[str] | None) -> Iterator[tuple[str, ModelInfo]]:
    """What is said of each id. `served` are the ids of the channels, None if these are not all known."""
    for model, value in values.items() if isinstance(values, dict) else ():
        path: Path = ("models", model)
        entry = _entry(document, path, {} if value is None else value, _InfoEntry)
        if served is not None and model not in served:
            document.problem(path, "expected the id of a model that some channel serves")
        if entry:
            yield (
                model,
                ModelInfo(
                    owned_by=entry.owned_by,
                    display_name=entry.display_name,
                    create_time=_time(document, (*path, "created"), entry.created),
                    family=entry.family,
                ),
            )


def _time(document: Document, path: Path, text: str | None) -> datetime | None:
    """A date, a time (UTC unless it says otherwise) or Unix seconds."""
    if text is None:
        return None
    try:
        time = datetime.fromtimestamp(int(text), UTC) if text.isdecimal() else datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        document.problem(path, "expected a date (2024-11-01), an ISO 8601 time or Unix seconds")
        return None


def _size(document: Document, path: Path, text: str) -> int:
    """Bytes, from `64MiB` or a plain number."""
    match = re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", text)
    size = int(match[1]) * UNITS.get(match[2], 0) if match else 0
    if not 1 <= size <= LARGEST_BODY:
        document.problem(path, "expected a number of bytes or a size like 64MiB, at most 1023MiB")
    return size


def _url(document: Document, path: Path, text: str, *, user: bool = False) -> str:
    """The URL without a slash at its end. Credentials in it are taken only where `user` says so."""
    try:
        url = urlsplit(text)
        good = url.scheme in {"http", "https"} and url.hostname and url.port != 0 and PRINTABLE.fullmatch(text)
    except ValueError:
        good = False
    if not good or url.query or url.fragment or "?" in text or "#" in text:
        document.problem(path, "expected a URL, http:// or https:// with a host and without a query")
    elif "@" in url.netloc and not user:
        document.problem(path, "expected a URL without credentials; a key goes into `api_key`")
    return text.rstrip("/")


def _entry(document: Document, path: Path, value: Value, entry: type[Entry]) -> Entry | None:
    """The mapping at the path as `entry`, a key without a value counting as absent; None if it has problems."""
    if not isinstance(value, dict):
        document.problem(path, "expected a mapping of keys to values")
        return None
    good = True
    fields = {field.name: field for field in msgspec.structs.fields(entry)}
    given = {key: child for key, child in value.items() if child is not None or key not in fields}
    for key in given.keys() - fields.keys():
        document.problem((*path, key), _unknown(key, fields))
        good = False
    for key, field in fields.items():
        if key in given:
            try:
                msgspec.convert(given[key], field.type, strict=False)
            except msgspec.ValidationError as error:
                _mismatch(document, (*path, key), str(error))
                good = False
        elif field.required:
            document.problem(path, f"expected `{key}`, which is missing")
            good = False
    return msgspec.convert(given, entry, strict=False) if good else None


def _unknown(key: str, known: Mapping[str, object]) -> str:
    why = "is not served by this version" if key in LATER_KEYS else "is not known here"
    return f"`{key}` {why}; expected {_any_of(tuple(known))}"


def _mismatch(document: Document, path: Path, message: str) -> None:
    """Notes msgspec's complaint, in the file's terms, at the place it is about."""
    text, _, place = message.partition(" - at `$")
    for step in STEP.finditer(place):
        path = (*path, step["key"] or int(step["index"]))
    if missing := MISSING.fullmatch(text):
        document.problem(path, f"expected `{missing[1]}`, which is missing")
    elif unknown := UNKNOWN.fullmatch(text):
        document.problem((*path, unknown[1]), f"`{unknown[1]}` is not known here")
    elif text.startswith("Invalid"):
        choices = _any_of(CHOICES[str(path[-1])])
        later = any(f"'{kind}'" in text for kind in LATER_AUTH)
        document.problem(path, f"expected {choices}" + ("; this one is not served by this version" if later else ""))
    else:
        document.problem(path, re.sub(r"`([a-z| ]+)`", _words, text).replace("Expected", "expected", 1))


def _words(match: re.Match[str]) -> str:
    return " or ".join(WORDS.get(kind, "nothing") for kind in match[1].split(" | "))


def _any_of(names: tuple[str, ...]) -> str:
    return f"one of {', '.join(names)}" if len(names) > 2 else " or ".join(names)
