"""Config values: the complete, checked and immutable settings of the gateway. Secrets are excluded from every
`repr`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from umg_grpc.config.address import Address
from umg_grpc.egress_rules import EgressRules
from umg_grpc.knowledge.quirks import NO_QUIRKS, Quirks
from umg_grpc.knowledge.shipped_prices import NO_FILE, PriceFile
from umg_grpc.v1 import pb

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class ConfigEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of the sections of the config file, which reject unknown keys."""


class Cors(ConfigEntry, frozen=True):
    """Origins of web pages that may call the gateway from a browser."""

    origins: tuple[str, ...] = ()
    """Origins like `https://app.example`, or `*` for all."""


class Log(ConfigEntry, frozen=True):
    """Level and format of the log, which goes to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity of the events that are logged."""
    format: Literal["auto", "text", "json"] = "auto"
    """`auto` is text on a terminal and JSON elsewhere."""


class Timeout(ConfigEntry, frozen=True):
    """Timeouts of upstream calls, in seconds. A plain number in the file is `first_byte`."""

    connect: Seconds = 5
    """Time until a connection is open, with TLS."""
    first_byte: Seconds = 60
    """Time from the sent request to the first byte of a stream."""
    idle: Seconds = 60
    """Time between two reads of a stream."""
    total: Seconds = 600
    """Time of the whole call, streamed or not."""
    images: Seconds = 300
    """Time of a whole image call, in place of the three above: an answer begins when the images are made."""


class Retries(ConfigEntry, frozen=True):
    """Repeated attempts, with back-off, after every channel that can serve a call was tried once and failed."""

    repeats: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1
    """Most repeated attempts of one call, on all its channels together."""
    backoff: Seconds = 0.1
    """Longest wait in seconds before the first repeated attempt, doubled for each next one. The actual wait is
    random between half of it and all of it, so that calls that failed together do not retry together.
    """
    max_backoff: Seconds = 2
    """Longest wait in seconds before any repeated attempt."""
    budget: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2
    """Retry budget: share of the recent calls that may repeat an attempt, so that retries do not multiply the load of a
    failing provider.
    """


class Breaker(ConfigEntry, frozen=True):
    """Circuit breaker of each channel and model: when it opens, so that the channel is not called, and for how long."""

    failures: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 5
    """Number of consecutive failures that opens it."""
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    """Share of failures among the calls of the last `window` seconds, at least 20 calls, that opens it, too."""
    window: Seconds = 30
    """Seconds of the past whose calls `share` applies to."""
    rest: Seconds = 5
    """Seconds for which it stays open before one call probes the channel; doubled after each failed probe."""
    max_rest: Seconds = 300
    """Longest time in seconds for which it stays open."""


class Overload(ConfigEntry, frozen=True):
    """Load shedding: limits of calls and connections in the process, and timeouts of slow clients."""

    calls: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Most calls in flight, also streams that wait for their provider. Without it their number has no limit."""
    memory: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8
    """Share of the memory of the container, or else the machine, above which the processes reject further calls."""
    queue: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 256
    """Most calls that wait for a slot, of the process and of each channel with a concurrency limit; also the most calls
    that wait to be started by the process (at least 64).
    """
    wait: Seconds = 1
    """Longest wait of a call for a slot, in seconds."""
    lag: Seconds = 0.2
    """Longest wait in seconds of processor time for the call that is to start next, if 64 or more calls wait."""
    connections: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Most connections of HTTP clients; beyond them only health checks and metrics are served. Without it as many as
    the limit of open files allows.
    """
    head: Seconds = 10
    """Seconds in which the headers of a request must be complete, from their first byte on."""
    upload: Seconds = 60
    """Seconds for which an upload may send nothing, and seconds for a whole body besides one for each 16 KiB."""


class BearerAuth(ConfigEntry, frozen=True, tag="bearer", tag_field="kind"):
    """Authentication by the header `authorization: Bearer KEY`."""


class HeaderAuth(ConfigEntry, frozen=True, tag="header", tag_field="kind"):
    """Authentication by a header whose whole value is the key."""

    header: str
    """Name of the header."""


class NoAuth(ConfigEntry, frozen=True, tag="none", tag_field="kind"):
    """No authentication: the upstream needs no key."""


class JwtAuth(ConfigEntry, frozen=True, tag="jwt", tag_field="kind"):
    """Authentication by a short-lived token, which is signed for each request. A key is `ACCESS_KEY:SECRET_KEY`."""


class AccessKeyAuth(ConfigEntry, frozen=True, tag="access_key", tag_field="kind"):
    """Authentication by a signature of each request. A key is `ACCESS_KEY_ID:SECRET_ACCESS_KEY`, with `scheme: aws`
    optionally followed by the session token of temporary credentials.
    """

    region: str | None = None
    """Region of the endpoint; None is `cn-north-1`, with `scheme: aws` the region in the host of `base_url`."""
    service: str | None = None
    """Name of the service in signatures; None is `cv`, with `scheme: aws` the service in the host of `base_url`."""
    scheme: Literal["volcengine", "aws"] = "volcengine"
    """Vendor whose scheme of signatures applies."""


class ServiceAccountAuth(ConfigEntry, frozen=True, tag="service_account", tag_field="kind"):
    """Authentication by an OAuth token, which is obtained with the file of a service account."""

    file: str
    """JSON file with the key of the account."""
    scope: str = "https://www.googleapis.com/auth/cloud-platform"
    """Scope of the tokens that are requested."""


class QueryAuth(ConfigEntry, frozen=True, tag="query", tag_field="kind"):
    """Authentication by a parameter in the query of each URL whose value is the key."""

    parameter: str
    """Name of the parameter."""


class CommandAuth(ConfigEntry, frozen=True, tag="command", tag_field="kind"):
    """Authentication by a token that a program prints. The program runs without a shell."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    """Program and its arguments."""
    ttl: Seconds = 300
    """Seconds after which a token is replaced that does not state its own end."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=60)] = 10
    """Most seconds of a run."""
    header: str | None = None
    """Header whose value is the bare token; None sends `authorization: Bearer TOKEN`."""


Auth = BearerAuth | HeaderAuth | QueryAuth | NoAuth | JwtAuth | AccessKeyAuth | ServiceAccountAuth | CommandAuth
KEYLESS_AUTH = (NoAuth, ServiceAccountAuth, CommandAuth)
"""Kinds of `auth` that have no `api_key` beside them."""


@dataclass(frozen=True)
class ChannelModel:
    """Model, or pattern of models, that a channel serves, by its public id and the provider's id."""

    id: str
    """Public id, which callers send; one `*` in it matches any characters."""
    upstream: str
    """Id at the upstream; a `*` in it is replaced by the match of the `*` in `id`."""
    family: str | None
    """Family whose rules apply, for example `famG`; None if not configured."""


@dataclass(frozen=True, kw_only=True)
class Channel:
    """Configured connection to a provider. The network settings of a `local` or `sandbox` channel are empty."""

    name: str
    protocols: tuple[str, ...]
    """Wire formats of the upstream, best first; or only `local`, or only `sandbox`."""
    models: tuple[ChannelModel, ...]
    base_url: str = ""
    """URL in front of the paths of the wire format, without a trailing slash."""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    """Keys that are used in turn; empty with the kinds of `KEYLESS_AUTH`, else at least one."""
    auth: Auth = field(default_factory=NoAuth)
    """Way of sending the key. If `has_explicit_auth` is false, a key is sent in the header of the wire format."""
    has_explicit_auth: bool = False
    """Whether `auth` is configured, and so applies to every wire format."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Headers sent with every request; none of them carries the key."""
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Parameters that are added to the query of every URL; none of them is the key."""
    proxy: str | None = field(default=None, repr=False)
    """URL of an HTTP proxy, optionally with credentials."""
    ca_file: str | None = None
    """PEM file of the trusted certificate authorities, instead of those of the system."""
    priority: int = 0
    """Priority; lower values come first."""
    weight: int = 1
    """Share of the calls among channels of the same priority; 0 comes after all others of the priority."""
    timeout: Timeout = field(default_factory=Timeout)
    shared_objects: bool = False
    """Whether callers may use any object of the upstream's account by its id (files, conversations, caches). True for
    `local` and `sandbox` channels, which have no account.
    """
    pace: float = 50.0
    """Tokens a second of the streams of a `sandbox` channel; 0 sends all tokens at once."""
    max_inputs: int | None = None
    """Most texts of one embedding request to the upstream; larger batches are sent in parts. None is the limit of the
    wire format.
    """
    quirks: Quirks = NO_QUIRKS
    """Configured quirks of the models, which override the built-in ones."""
    heal: bool = True
    """Whether a request that the upstream refuses for a member that can be left out or adapted is sent once more."""
    prompt_caching: Literal["auto", "off"] = "auto"
    """Whether requests to `messages` upstreams get prompt cache marks if the caller's format has none."""
    concurrency: int | None = None
    """Concurrency limit: most calls in flight at the upstream; None is unlimited. Further calls use another channel, or
    wait.
    """
    discovery: Literal["off", "beside", "only"] = "off"
    """Whether the models that the provider lists are served where a pattern matches: `beside` all others that match, or
    `only` they, as soon as the list is known.
    """
    unpriced: tuple[pb.Price, ...] | None = None
    """Prices of its models that have none; empty if they remain without, None for those of the config."""
    price_region: str = ""
    """Region of its public prices, where its address does not state it; "" for the one that the address states."""


class ModelLimits(ConfigEntry, frozen=True):
    """Limits for the calls of a model, shared by all API keys; None is unlimited."""

    rpm: Limit | None = None
    """Calls in any 60 seconds."""
    tpm: Limit | None = None
    """Input and output tokens together in any 60 seconds."""
    concurrency: Limit | None = None
    """Calls in flight."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Configured properties of a public model id; None for a property that is not configured."""

    owned_by: str | None = None
    display_name: str | None = None
    create_time: datetime | None = None
    """Release time of the model, in UTC."""
    family: str | None = None
    tokenizer: str | None = None
    """Vocabulary that counts its tokens, one of `umg_grpc.tokens.TOKENIZERS`; None selects that of its family."""
    described: pb.Model = field(default_factory=pb.Model)
    """Further public properties: capabilities, limits, prices, lifecycle. Must not be modified."""
    hedge: float | None = None
    """Seconds without a first byte after which a hedged request goes to a second channel; None disables hedging."""
    cache: int | None = None
    """Seconds for which a response is cached for equal requests of the same key; None caches only responses that the
    caller wants cached.
    """
    limits: ModelLimits | None = None
    unpriced: tuple[pb.Price, ...] | None = None
    """Prices of the model if it has none; empty if it remains without, None for those of its channels."""


class Tls(ConfigEntry, frozen=True):
    """PEM files for TLS of the HTTP and gRPC ports, which are loaded again when they change."""

    certificate: str
    """Certificate of the gateway, followed by its intermediate certificates."""
    key: str
    """Private key of the certificate, unencrypted."""
    client_ca: str | None = None
    """Authorities of client certificates, which every client then needs; None accepts clients without a certificate."""


class Limits(ConfigEntry, frozen=True):
    """Maximum number of texts or documents in one embedding or rerank call."""

    embedding_inputs: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 2048
    """Most texts to embed; the default is the limit of the vendor of the format."""
    rerank_documents: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1000
    """Most documents to rank; the default is the advice of the vendors of the format."""


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Time and total size for which data of callers is stored."""

    ttl: int
    """Seconds for which an entry is kept after its last change."""
    max_bytes: int
    """Most bytes of all callers together; the oldest entry is deleted first."""
    enabled: bool = True
    """Whether any entry is kept."""


@dataclass(frozen=True, kw_only=True)
class UsageRetention:
    """Times and total size for which usage records and totals of usage are kept."""

    ttl: int
    """Seconds for which a record is kept after the arrival of its call."""
    max_bytes: int | None
    """Most bytes of all records; the oldest are deleted first, also before `ttl`. None for no limit."""
    totals_ttl: int = 3650 * 86400
    """Seconds for which totals by day and month are kept. Those by hour are kept for 400 days at most, those by minute
    for 2 days.
    """
    enabled: bool = True
    """Whether any record is kept."""


@dataclass(frozen=True, kw_only=True)
class BlobStorage(Retention):
    """Location of result files, and the time and total size for which they are stored."""

    url: str | None = None
    """Bucket, for example `s3://bucket/prefix`; None is a folder in the data directory."""
    endpoint: str | None = None
    """URL of a server that is compatible with S3; None is that of the cloud."""


@dataclass(frozen=True, kw_only=True)
class VideoTaskConfig:
    """Settings of video tasks: how long they are stored, and how often their providers are polled."""

    ttl: int
    """Seconds for which a task is kept after its end."""
    max_bytes: int
    """Most bytes of all tasks together; the oldest ended task is deleted first."""
    concurrency: int = 32
    """Most polls of a channel at the same time, in each process."""
    polls_per_second: float = 50.0
    """Most polls of a channel that start in a second, in each process."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """Settings of the discovery of models: how often the model lists of providers are read."""

    interval: int = 3600
    """Seconds between two refreshes, up to a tenth shorter at random."""
    wait: float = 5
    """Most seconds that a start waits for the lists."""


@dataclass(frozen=True)
class KeySettings:
    """Settings of callers' API keys."""

    max_stale: int = 3600
    """Seconds for which stored keys are valid while the database is unavailable."""


@dataclass(frozen=True, kw_only=True)
class MetricsAccess:
    """Separate address of `/metrics`, and the key that it requires. Without either, the HTTP port serves it without a
    key.
    """

    address: Address | None = None
    """Address of a listener for `/metrics` only; the HTTP face then answers 404 for that path."""
    key: str | None = field(default=None, repr=False)
    """Bearer token of the scrapers; the key of a caller is not accepted instead."""
    key_labels: int = 0
    """Number of callers' keys with a label of their own in each process; 0 for metrics without the label."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Storage settings of a config: where gateways store keys, usage and tasks; see the fields of `Config`."""

    database: str = field(default="sqlite", repr=False)
    redis: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Complete config of the gateway, as parsed from its file or built in."""

    channels: tuple[Channel, ...]
    models: Mapping[str, ModelInfo] = field(default_factory=lambda: MappingProxyType({}))
    """Properties of models by public id; only ids that a channel serves."""
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Additional names of models: name -> public id, or id with a suffix."""
    public_url: str | None = None
    """URL of the gateway for callers, without a trailing slash; None means the HTTP address."""
    secret: str | None = field(default=None, repr=False)
    """Secret that signs links and callback paths; None means a generated one in the data directory."""
    accepted_secrets: tuple[str, ...] = field(default=(), repr=False)
    """Further secrets whose signatures are accepted, for a rotation of `secret`."""
    database: str = field(default="sqlite", repr=False)
    """`sqlite`, or the URL of a PostgreSQL database."""
    redis: str | None = field(default=None, repr=False)
    """URL of a Redis server that replicas share, for limits of requests a minute and for cached responses."""
    cors: Cors = field(default_factory=Cors)
    pages: bool = True
    """Whether the HTTP face serves its home page, the API reference and `/openapi.json`."""
    body_limit: int = 64 * 1024 * 1024
    """Largest request body, in bytes."""
    limits: Limits = field(default_factory=Limits)
    retries: Retries = field(default_factory=Retries)
    breaker: Breaker = field(default_factory=Breaker)
    overload: Overload = field(default_factory=Overload)
    cache_bytes: int = 64 * 1024**2
    """Most memory of the cached responses in a process, in bytes; Redis has its own limit."""
    stream_headers_after: float = 15.0
    """Seconds after which the headers of a stream are sent although no provider has given a status."""
    drain: float = 30.0
    """Seconds that calls in flight may still take at a shutdown."""
    drain_delay: float | None = None
    """Seconds between the announcement of a shutdown and the end of the listeners; None is 5 where a face is bound to
    another address than loopback, else 0.
    """
    shipped_prices: bool = True
    """Whether models of providers without a `price` have their public price (`umg_grpc.knowledge.shipped_prices`)."""
    price_file: str | None = None
    """Path of a file with public prices that have precedence over shipped ones; None for `prices.json` in the data
    directory.
    """
    public_prices: PriceFile = NO_FILE
    """Content of that file, which is read with the config."""
    unpriced: tuple[pb.Price, ...] = ()
    """Prices of models that have none, unless the model or its channel states others; empty if they remain without,
    and are refused to keys with a budget.
    """
    discovery: Discovery = Discovery()
    keys: KeySettings = KeySettings()
    tls: Tls | None = None
    """Files of the TLS listeners; None serves both faces without TLS."""
    log: Log = field(default_factory=Log)
    metrics: MetricsAccess = MetricsAccess()
    egress: EgressRules = field(default_factory=EgressRules)
    """Rules for URLs that callers name and the gateway itself calls."""
    responses: Retention = Retention(ttl=30 * 86400, max_bytes=1024**3)
    """Retention of stored responses with their conversations."""
    reasoning: Retention = Retention(ttl=86400, max_bytes=64 * 1024**2)
    """Retention of reasoning state, for clients that do not send it back."""
    usage: UsageRetention = UsageRetention(ttl=90 * 86400, max_bytes=1024**3, totals_ttl=3650 * 86400)
    """Retention of usage. On PostgreSQL its records have no limit of size unless one is configured."""
    blobs: BlobStorage = BlobStorage(ttl=86400, max_bytes=10 * 1024**3)
    """Place and retention of result files, which callers read by signed links."""
    tasks: VideoTaskConfig = VideoTaskConfig(ttl=7 * 86400, max_bytes=1024**3)
    """Retention and polls of video tasks."""
