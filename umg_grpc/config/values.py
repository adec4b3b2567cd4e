"""What the gateway is given of the config: complete, checked, immutable. Secrets stay out of every `repr`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from umg_grpc.quirks import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the file that is used as it was written."""


class Cors(Written, frozen=True):
    """Which browsers' pages may call."""

    origins: tuple[str, ...] = ()
    """`https://app.example` or `*` for all."""


class Log(Written, frozen=True):
    """What is logged to standard error, and how."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["auto", "text", "json"] = "auto"
    """`auto` is text on a terminal and JSON elsewhere."""


class Timeout(Written, frozen=True):
    """How long an upstream may take, in seconds. A plain number in the file is `first_byte`."""

    connect: Seconds = 5
    first_byte: Seconds = 60
    """From the sent request to the first byte of a stream."""
    idle: Seconds = 60
    """Between two reads of a stream."""
    total: Seconds = 600
    """The whole call, streamed or not."""


class Retries(Written, frozen=True):
    """How often a call asks a channel again that failed, once each of its channels was asked, and how long it waits
    before it does.
    """

    repeats: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    """Most such attempts of one call, on all its channels together."""
    backoff: Seconds = 0.1
    """Seconds before the first of them; twice as many before each that follows. A random part of them is waited, so
    that calls that failed together do not come back together.
    """
    max_backoff: Seconds = 2
    budget: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    """Share of the calls of the last while that may ask a channel again, so that a provider in trouble is not asked
    for several times of what it could not do once.
    """


class Breaker(Written, frozen=True):
    """When a channel is left alone with a model that it fails at, and for how long."""

    failures: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 5
    """So many in a row are enough."""
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    """Or so large a share of the calls of the last `window` seconds, of at least 20."""
    window: Seconds = 30
    rest: Seconds = 5
    """Seconds without a call, before one is sent to see; twice as many after each that fails."""
    max_rest: Seconds = 300


class Overload(Written, frozen=True):
    """How much the process takes on at once, and what it does not wait for."""

    calls: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 4096
    """Most calls under way."""
    queue: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 256
    """Most calls that wait for their turn, in front of the process and of each channel that has a bound of its own."""
    wait: Seconds = 1
    """Seconds that one waits at most."""
    lag: Seconds = 0.2
    """Seconds by which the process may be behind with its work. When it is so for three times as long on end, calls are
    counted out until it keeps up. Less happens to one that reads a vocabulary, or has to share its cores.
    """
    connections: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 8192
    """Most connections of HTTP clients; above them only health and metrics are answered."""
    head: Seconds = 10
    """Seconds in which the head of a request has to arrive, from its first byte on."""
    upload: Seconds = 60
    """Seconds that an upload may stand still, and that a body has to arrive in beside one for each 16 KiB of it."""


class BearerAuth(Written, frozen=True, tag="bearer", tag_field="kind"):
    """The key goes into `authorization: Bearer KEY`."""


class HeaderAuth(Written, frozen=True, tag="header", tag_field="kind"):
    """The key, bare, is the value of a header."""

    header: str


class NoAuth(Written, frozen=True, tag="none", tag_field="kind"):
    """The upstream wants no key."""


Auth = BearerAuth | HeaderAuth | NoAuth


@dataclass(frozen=True)
class ChannelModel:
    """A model that a channel reaches, or all whose ids match a pattern."""

    id: str
    """The public id, which callers name; one `*` in it stands for any characters."""
    upstream: str
    """The id that the upstream knows it by; a `*` in it is what the one in `id` stands for."""
    family: str | None
    """The family whose rules apply, e.g. `famG`; None where the operator says nothing."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A configured way to an upstream.

    Of a `local` or `sandbox` channel all that has to do with the network is empty.
    """

    name: str
    protocols: tuple[str, ...]
    """Wire formats that the upstream speaks, in order of preference; `local` and `sandbox` stand alone."""
    models: tuple[ChannelModel, ...]
    base_url: str = ""
    """All that stands before a format's own path, without a slash at the end."""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    """Used in turn; none with `NoAuth`, at least one otherwise."""
    auth: Auth = field(default_factory=NoAuth)
    """How the key travels; where `auth_written` is false and there is a key, the format's own header carries it."""
    auth_written: bool = False
    """Whether the operator said so, whatever the format."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Sent with every request; none of them is the one that carries the key."""
    proxy: str | None = field(default=None, repr=False)
    """URL of an HTTP proxy, perhaps with credentials."""
    ca_file: str | None = None
    """PEM file of the certificate authorities to trust instead of the system's."""
    priority: int = 0
    """Lower first."""
    weight: int = 1
    """Share among channels of the same priority; 0 is used only after them."""
    timeout: Timeout = field(default_factory=Timeout)
    shared_objects: bool = False
    """Whether callers may name what they like of the upstream's account by its id (files, conversations, caches); of
    `local` and `sandbox` channels, which have no account, it is true.
    """
    pace: float = 50.0
    """Of a `sandbox` channel: tokens a second of a stream; 0 is at once."""
    max_inputs: int | None = None
    """Most texts of one embedding request to the upstream, which gets larger batches in parts; None is what the format
    says.
    """
    quirks: Quirks = NO_QUIRKS
    """What the operator says that its models refuse or need; it comes before what is known of them."""
    prompt_caching: Literal["auto", "off"] = "auto"
    """Whether `messages` upstreams are given marks for their prompt cache where the caller's format has none."""
    concurrency: int | None = None
    """Most calls under way at the upstream; None is no bound. Those beyond it go to another channel, or wait."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """What the operator says of a public model id. None where nothing was said."""

    owned_by: str | None = None
    display_name: str | None = None
    create_time: datetime | None = None
    """When the model was released, in UTC."""
    family: str | None = None
    tokenizer: str | None = None
    """Vocabulary that counts its tokens, one of `umg_grpc.tokens.TOKENIZERS`; None means its family's."""
    described: pb.Model = field(default_factory=pb.Model)
    """What callers are shown of it beside the above: capabilities, limits, prices, lifecycle. Not to be changed."""
    hedge: float | None = None
    """Seconds without a first byte after which a second channel is asked too; None is never."""
    cache: int | None = None
    """Seconds for which an answer is kept and given again to the same question of the same key; None is not at all,
    unless the caller asks for it.
    """


class Limits(Written, frozen=True):
    """How much one call may ask for."""

    embedding_inputs: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 2048
    """Texts to embed; what the vendor of the format takes."""
    rerank_documents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1000
    """Documents to rank; what the vendors of the format advise."""


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How long something of the callers' is kept, and how much of it."""

    ttl: int
    """Seconds from its last change."""
    max_bytes: int
    """Of all callers together; the oldest goes first."""
    enabled: bool = True
    """Whether anything is kept at all."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The whole of it."""

    channels: tuple[Channel, ...]
    models: Mapping[str, ModelInfo] = field(default_factory=lambda: MappingProxyType({}))
    """By public id; only of ids that some channel serves."""
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Further names of models: name -> the public id, or the id with a suffix, that it stands for."""
    public_url: str | None = None
    """Where callers reach the gateway, without a slash at the end; None means the HTTP address."""
    secret: str | None = field(default=None, repr=False)
    """Signs links and callback paths; None means one that is made in the data dir."""
    database: str = field(default="sqlite", repr=False)
    """`sqlite`, or the URL of a PostgreSQL database."""
    redis: str | None = field(default=None, repr=False)
    """URL of a Redis server, which replicas share: for requests a minute, and for answers that are kept."""
    cors: Cors = field(default_factory=Cors)
    body_limit: int = 64 * 1024 * 1024
    """Largest request body, in bytes."""
    limits: Limits = field(default_factory=Limits)
    retries: Retries = field(default_factory=Retries)
    breaker: Breaker = field(default_factory=Breaker)
    overload: Overload = field(default_factory=Overload)
    cache_bytes: int = 64 * 1024**2
    """Most memory that kept answers take in a process; in Redis its own bound holds."""
    drain: float = 30.0
    """Seconds that calls under way are given when the service is told to end."""
    log: Log = field(default_factory=Log)
    responses: Retention = Retention(ttl=30 * 86400, max_bytes=1024**3)
    """Stored answers with the conversations they continue."""
    reasoning: Retention = Retention(ttl=86400, max_bytes=64 * 1024**2)
    """Reasoning state, for callers whose client does not send it back."""
    notices: tuple[str, ...] = ()
    """What the file asks for that this version leaves out, for the log."""
