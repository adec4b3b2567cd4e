"""Config values: complete, checked and immutable settings of the gateway. Secrets are excluded from every `repr`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Literal, NamedTuple

from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.proxy_rules import NO_PROXIES, ProxyRules
from umg_grpc.config.alert_settings import NO_RECEIVERS, AlertSettings
from umg_grpc.config.file_sections import (
    Auth,
    Breaker,
    CorsSection,
    Fallbacks,
    Limits,
    Log,
    ModelLimits,
    NoAuth,
    Overload,
    Retries,
    Timeout,
    Tls,
)
from umg_grpc.config.network_addresses import Address
from umg_grpc.config.sign_on_section import Sessions, SignOn
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.sensitive_text_patterns import GuardedPattern
from umg_grpc.knowledge.shipped_prices import NO_FILE, PriceFile
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import has_cache_marks, needs_cache_marks

SIMULATED_PROTOCOL = "sandbox"
"""Protocol of the channels that the simulated provider serves."""
DIRECT_ROUTE = "direct"
"""Value of `proxy` for a channel that uses none, also not that of the environment."""


@dataclass(frozen=True)
class ChannelModel:
    """Model, or pattern of models, that a channel serves, by its public id and the provider's id."""

    id: str
    """Public id, which callers send; one `*` in it matches any characters."""
    upstream: str
    """Id at the upstream; a `*` in it is replaced by the match of the `*` in `id`."""
    family: str | None
    """Family whose rules apply, for example `famG`; None if not configured."""
    listed: "frozenset[pb.ModelOperation.ValueType] | None" = None
    """Operations that the provider's list states for a model that is only there; empty if it states none, None for a
    model in the config.
    """


@dataclass(frozen=True, kw_only=True)
class Channel:
    """Configured connection to a provider. The network settings of a `local` or `sandbox` channel are empty."""

    name: str
    protocols: tuple[str, ...]
    """Wire formats of the upstream, best first; or only `local`, or only `sandbox`."""
    models: tuple[ChannelModel, ...]
    provider: str = ""
    """Preset that its config names; "" if there is none."""
    base_url: str = ""
    """URL in front of the paths of the wire format, without a trailing slash."""
    base_urls: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Protocol -> URL in place of `base_url`, for protocols at another address of the upstream."""
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    """Keys that are used in turn or by affinity; empty with the kinds of `KEYLESS_AUTH`, else at least one."""
    auth: Auth = field(default_factory=NoAuth)
    """Way of sending the key. If `has_explicit_auth` is false, a key is sent in the header of the wire format."""
    has_explicit_auth: bool = False
    """Whether `auth` is configured, and so applies to every wire format."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Headers sent with every request; none of them carries the key."""
    query: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Parameters that are added to the query of every URL; none of them is the key."""
    proxy: str | None = field(default=None, repr=False)
    """URL of an HTTP proxy, optionally with credentials, or `DIRECT_ROUTE`; None for that of the environment."""
    ca_file: str | None = None
    """PEM file of the trusted certificate authorities, instead of those of the system."""
    priority: int = 0
    """Priority; lower values come first."""
    weight: int = 1
    """Share of the calls among channels of the same priority; 0 comes after all others of the priority."""
    weight_place: str = field(default="", compare=False, repr=False)
    """File and line that state the weight, `umg.yaml:41`; "" for the default weight, which may be overridden."""
    disabled: bool = False
    """Whether calls skip the channel, by an override: no config states it."""
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
    prompt_caching: Literal["auto", "off", "explicit"] = "auto"
    """Whether requests to `messages` upstreams, and to relays of their models in chat, get prompt cache marks if the
    caller's format has none. `explicit`: also, whether `native` upstreams store beginnings of marked prompts where that
    costs less.
    """
    concurrency: int | None = None
    """Concurrency limit: most calls in flight at the upstream; None is unlimited. Further calls use another channel, or
    wait.
    """
    discovery: Literal["off", "known", "preset", "beside", "only"] = "off"
    """Models that are listed beside those of the config, where a pattern matches: none (`off`), the known ones of the
    preset (`known`), the ones in the list of the provider, with the known ones until its list is read in the background
    (`preset`), the same but awaited by the start (`beside`), or as the only ones (`only`).
    """
    unpriced: tuple[pb.Price, ...] | None = None
    """Prices of its models that have none; empty if they remain without, None for those of the config."""
    unpriced_place: str = field(default="", compare=False, repr=False)
    """File and line that state `unpriced`; "" for one of the preset."""
    price_region: str = ""
    """Region of its public prices, where its address does not state it; "" for the one that the address states."""

    def address(self, protocol: str) -> str:
        """Return the URL in front of the paths of a protocol."""
        return self.base_urls.get(protocol, self.base_url)

    @property
    def addresses(self) -> tuple[str, ...]:
        """URLs at which the upstream is called, each once; empty for an upstream inside the gateway."""
        return tuple(dict.fromkeys(filter(None, (self.base_url, *self.base_urls.values()))))

    @property
    def listing_protocols(self) -> tuple[str, ...]:
        """Protocols whose model list the upstream may have: those at `base_url`."""
        return tuple(protocol for protocol in self.protocols if protocol not in self.base_urls)

    @property
    def reads_list(self) -> bool:
        """Whether the models that the provider lists are served."""
        return self.discovery not in {"off", "known"}

    @property
    def is_simulated(self) -> bool:
        """Whether the simulated provider serves the channel: a call fails there only if its caller demands it."""
        return SIMULATED_PROTOCOL in self.protocols

    def marks_prompts(self, protocol: str) -> bool | None:
        """Return whether requests in a protocol get prompt cache marks; None if that depends on the model, or for a
        protocol without marks.
        """
        if self.prompt_caching == "off" and has_cache_marks(protocol):
            return False
        return True if needs_cache_marks(protocol) else None


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Configured properties of a public model id; None for a property that is not configured."""

    owned_by: str | None = None
    display_name: str | None = None
    create_time: datetime | None = None
    """Release time of the model, in UTC."""
    family: str | None = None
    tokenizer: str | None = None
    """Vocabulary that counts its tokens, one of `umg_grpc.tokens.TOKENIZER_ROWS`; None selects that of its family."""
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
    price_place: str = field(default="", compare=False, repr=False)
    """File and line that state the price, `umg.yaml:41`; "" for a model whose price may be set elsewhere."""
    unpriced_place: str = field(default="", compare=False, repr=False)
    """File and line that state `unpriced`."""


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
class GuardRow:
    """Guard that checks requests and responses of some calls."""

    name: str
    kind: Literal["patterns", "webhook", "grpc"]
    phases: tuple[Literal["request", "response"], ...] = ("request", "response")
    """Parts of a call that it checks."""
    models: tuple[str, ...] = ("*",)
    """Ids of the models whose calls it checks, in which `*` matches any characters."""
    operations: tuple[str, ...] = ()
    """Operations that it checks; empty for all."""
    keys: tuple[str, ...] = ()
    """Names of the API keys whose calls it checks, in which `*` matches any characters; empty for all."""
    window: int = 400
    """Characters of a stream that are checked together. Patterns have windows of their own."""
    hold_back: int = 100
    """Last characters of a window that the caller does not get before they were checked with the next one."""
    patterns: tuple[GuardedPattern, ...] = ()
    """Patterns of the kind `patterns`."""
    action: Literal["mask", "refuse"] = "mask"
    """Consequence of a match of the kind `patterns`."""
    address: str = ""
    """URL or gRPC target of the other kinds."""
    tls: bool = False
    """Whether a gRPC target is called over TLS."""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Headers or metadata of each check, for example with a key."""
    timeout: float = 2.0
    """Most seconds of a check."""
    on_failure: Literal["open", "closed"] = "closed"
    """Whether the content passes or the call fails if the guard fails or is too slow."""
    content: bool = False
    """Whether it also gets the whole message, with its media."""
    replaces: bool = True
    """Whether it may change texts; if not, it decides at the same time as its neighbours that do not."""


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Storage settings of a config: where gateways store keys, usage and tasks; see the fields of `Config`."""

    database: str = field(default="sqlite", repr=False)
    redis: str | None = field(default=None, repr=False)
    secret: str | None = field(default=None, repr=False)
    sessions: Sessions = field(default_factory=Sessions)


class WrittenConfig(NamedTuple):
    """Text from which a config was read."""

    text: str = ""
    filename: str = ""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Complete config of the gateway, as parsed from its file or built in."""

    channels: tuple[Channel, ...]
    written: WrittenConfig = field(default=WrittenConfig(), repr=False, compare=False)
    """Text of the file, for the list of settings in force."""
    models: Mapping[str, ModelInfo] = field(default_factory=lambda: MappingProxyType({}))
    """Properties of models by public id; only ids that a channel serves."""
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Additional names of models: name -> public id, or id with a suffix."""
    fallbacks: Mapping[str, Fallbacks] = field(default_factory=lambda: MappingProxyType({}))
    """Models that are called in place of others that fail: public id, or pattern with one `*` -> models by cause."""
    guards: tuple[GuardRow, ...] = ()
    """Guards in the order in which they check a call."""
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
    cors: CorsSection = field(default_factory=CorsSection)
    pages: bool = True
    """Whether the HTTP face serves the playground, the API reference and `/openapi.json`."""
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
    unpriced_place: str = field(default="", compare=False, repr=False)
    """File and line that state `unpriced`."""
    set_prices: Mapping[tuple[str, str], tuple[pb.Price, ...]] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )
    """Prices of the database by model and channel, "" for all channels. Those of the file take precedence."""
    discovery: Discovery = Discovery()
    keys: KeySettings = KeySettings()
    sign_on: SignOn = field(default_factory=SignOn)
    """Issuers whose users sign on and whose tokens are credentials of callers, and sessions."""
    tls: Tls | None = None
    """Files of the TLS listeners; None serves both faces without TLS."""
    log: Log = field(default_factory=Log)
    metrics: MetricsAccess = MetricsAccess()
    egress: EgressRules = field(default_factory=EgressRules)
    """Rules for URLs that callers name and the gateway itself calls."""
    proxies: ProxyRules = field(default=NO_PROXIES, repr=False)
    """Proxies that the environment names, for calls to providers. They belong to the machine and not to the file."""
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
    alerts: AlertSettings = NO_RECEIVERS
    """Receivers of notifications about conditions that need a decision of an operator, and their rules."""
