"""Schema of the config file: all its keys and values, and the functions that parse a file."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated

import msgspec

from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.host_list_entries import NetworkPlace, parse_place
from umg_grpc.base.proxy_rules import ProxyRules
from umg_grpc.config.alert_section import AlertsEntry, alerts
from umg_grpc.config.built_in_config import BUILT_IN
from umg_grpc.config.config_values import (
    BlobStorage,
    Config,
    Discovery,
    KeySettings,
    MetricsAccess,
    Retention,
    Storage,
    UsageRetention,
    VideoTaskConfig,
    WrittenConfig,
)
from umg_grpc.config.file_sections import (
    Breaker,
    ConfigEntry,
    CorsSection,
    Limits,
    Log,
    Overload,
    Retries,
    Seconds,
    Tls,
)
from umg_grpc.config.sign_on_section import SignOn, check_sign_on
from umg_grpc.config.typed_sections_from_yaml import read_entry
from umg_grpc.config.value_parsers import address, body_size, duration, redis_url, scheme, store_size, token, url
from umg_grpc.config.yaml_document import ConfigError, YamlDocument

BUCKET_URL = re.compile(r"(?:s3|gs|az)://[A-Za-z0-9][A-Za-z0-9._-]{1,62}(?:/[^?#\s]*)?")
ORIGIN_FORM = re.compile(r"\*|https?://[^\s/?#]+")


class _RetentionEntry(ConfigEntry, frozen=True):
    ttl: str | None = None
    max_bytes: str | None = None
    enabled: bool = True


class _UsageEntry(_RetentionEntry, frozen=True):
    totals_ttl: str | None = None


class _BlobsEntry(_RetentionEntry, frozen=True):
    url: str | None = None
    endpoint: str | None = None


class _MetricsEntry(ConfigEntry, frozen=True):
    address: str | None = None
    key: Annotated[str, msgspec.Meta(min_length=16)] | None = None
    key_labels: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class _EgressEntry(ConfigEntry, frozen=True):
    allow: tuple[str, ...] = ()
    http: bool = False
    max_bytes: str | None = None
    timeout: Seconds = 30
    proxy: str | None = None
    """URL of an HTTP proxy for all these URLs; they are called directly if unset."""


class _TasksEntry(ConfigEntry, frozen=True):
    ttl: str | None = None
    max_bytes: str | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1000)] = VideoTaskConfig.concurrency
    polls_per_second: Annotated[float, msgspec.Meta(gt=0, le=100_000)] = VideoTaskConfig.polls_per_second


class _DiscoveryEntry(ConfigEntry, frozen=True):
    interval: str | None = None
    wait: Annotated[float, msgspec.Meta(ge=0, le=300)] = Discovery.wait


class _KeysEntry(ConfigEntry, frozen=True):
    max_stale: str | None = None


class _File(ConfigEntry, frozen=True):
    channels: Annotated[list[object], msgspec.Meta(min_length=1)]
    """Connections to providers and to the models of the gateway itself."""
    models: dict[str, object] = msgspec.field(default_factory=dict)
    aliases: dict[str, str] = msgspec.field(default_factory=dict)
    fallbacks: dict[str, object] = msgspec.field(default_factory=dict)
    guards: list[object] = msgspec.field(default_factory=list)
    """Guards, which check requests and responses, in the order in which they check them."""
    public_url: str | None = None
    secret: Annotated[str, msgspec.Meta(min_length=16)] | None = None
    accepted_secrets: tuple[Annotated[str, msgspec.Meta(min_length=16)], ...] = ()
    """Further secrets whose links and signatures are valid, while `secret` is replaced."""
    database: str = "sqlite"
    redis: str | None = None
    cors: CorsSection = CorsSection()
    pages: bool = True
    body_limit: str = "64MiB"
    limits: Limits = Limits()
    retries: Retries = Retries()
    breaker: Breaker = Breaker()
    overload: Overload = Overload()
    cache_bytes: str = "64MiB"
    stream_headers_after: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 15
    drain: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 30
    drain_delay: Annotated[float, msgspec.Meta(ge=0, le=3600)] | None = None
    shipped_prices: bool = True
    price_file: str | None = None
    unpriced: str | dict[str, object] | None = None
    discovery: _DiscoveryEntry = _DiscoveryEntry()
    keys: _KeysEntry = _KeysEntry()
    sign_on: SignOn = SignOn()
    tls: Tls | None = None
    log: Log = Log()
    metrics: _MetricsEntry = _MetricsEntry()
    egress: _EgressEntry = _EgressEntry()
    responses: _RetentionEntry = _RetentionEntry()
    reasoning: _RetentionEntry = _RetentionEntry()
    usage: _UsageEntry = _UsageEntry()
    blobs: _BlobsEntry = _BlobsEntry()
    tasks: _TasksEntry = _TasksEntry()
    alerts: AlertsEntry = AlertsEntry()


FILE_TYPE: type[ConfigEntry] = _File
"""Type of the whole file."""


def built_in() -> Config:
    """Return the config that is used without a file: the local models and the simulated provider."""
    return parse(BUILT_IN, "built-in config", {})


def parse(text: str, filename: str, environment: Mapping[str, str]) -> Config:
    """Parse the text of a config file. `${NAME}` in a value is replaced by an environment variable, `$${` by `${`.
    Relative paths are relative to the file. Raises ConfigError with all problems, except problems that others hide.
    """
    document = YamlDocument(text, filename, environment)
    config = _config(document, PurePath(filename).parent)
    if config is None or document.problems:
        raise ConfigError(document.problems)
    return replace(config, written=WrittenConfig(text, filename))


def parse_storage(text: str, filename: str, environment: Mapping[str, str]) -> Storage:
    """Return a file's storage settings; problems in other sections are ignored. Raise ConfigError as `parse` does."""
    document = YamlDocument(text, filename, environment)
    file = read_entry(document, (), document.value, _File)
    if file is None:
        raise ConfigError(document.problems)
    _check_database(document, file.database)
    redis = redis_url(document, ("redis",), file.redis) if file.redis is not None else None
    if document.problems:
        raise ConfigError(document.problems)
    return Storage(database=file.database, redis=redis, secret=file.secret, sessions=file.sign_on.sessions)


def _config(document: YamlDocument, directory: PurePath) -> Config | None:
    """Return the config, or None if it is invalid. All parts are read even after a problem, to report all problems."""
    # imported here: their names of protocols come from the wire formats, which are slow to import
    from umg_grpc.config.channel_proxies import environment_rules
    from umg_grpc.config.channel_section import channels
    from umg_grpc.config.fallback_section import fallbacks
    from umg_grpc.config.guard_section import guards
    from umg_grpc.config.model_aliases import aliases
    from umg_grpc.config.model_index import ModelIndex
    from umg_grpc.config.model_settings import models
    from umg_grpc.config.price_settings import unpriced

    file = read_entry(document, (), document.value, _File)
    values = document.value if isinstance(document.value, dict) else {}
    served_channels = tuple(channels(document, values.get("channels"), directory))
    written = values.get("channels")
    complete = isinstance(written, list) and len(written) == len(served_channels)
    served = ModelIndex(served_channels) if complete else None
    described = dict(models(document, values.get("models"), served))
    if file is None:
        return None
    _check(document, file)
    proxies = environment_rules(document, served_channels)
    return Config(
        channels=served_channels,
        models=MappingProxyType(described),
        aliases=MappingProxyType(aliases(document, file.aliases, described, served)),
        fallbacks=MappingProxyType(fallbacks(document, file.fallbacks, file.aliases, described, served)),
        guards=tuple(guards(document, file.guards, file.aliases, served)),
        public_url=url(document, ("public_url",), file.public_url) if file.public_url is not None else None,
        secret=file.secret,
        accepted_secrets=file.accepted_secrets,
        database=file.database,
        redis=redis_url(document, ("redis",), file.redis) if file.redis is not None else None,
        cors=file.cors,
        pages=file.pages,
        body_limit=body_size(document, ("body_limit",), file.body_limit),
        limits=file.limits,
        retries=file.retries,
        breaker=file.breaker,
        overload=file.overload,
        cache_bytes=store_size(document, ("cache_bytes",), file.cache_bytes),
        stream_headers_after=file.stream_headers_after,
        drain=file.drain,
        drain_delay=file.drain_delay,
        shipped_prices=file.shipped_prices,
        price_file=file.price_file,
        unpriced=unpriced(document, ("unpriced",), file.unpriced) or (),
        unpriced_place=document.place(("unpriced",)),
        discovery=_discovery(document, file.discovery),
        keys=_keys(document, file.keys),
        sign_on=file.sign_on,
        tls=_tls(file.tls, directory) if file.tls is not None else None,
        log=file.log,
        metrics=_metrics(document, file.metrics),
        egress=_egress(document, file.egress, proxies),
        proxies=proxies,
        responses=_retention(document, "responses", file.responses, Config.responses),
        reasoning=_retention(document, "reasoning", file.reasoning, Config.reasoning),
        usage=_usage(document, file.usage, file.database),
        blobs=_blobs(document, file.blobs),
        tasks=_tasks(document, file.tasks),
        alerts=alerts(document, file.alerts, directory),
    )


def _check(document: YamlDocument, file: _File) -> None:
    """Report values that are valid alone but not together, and values whose validity no type can describe."""
    for position, origin in enumerate(file.cors.origins):
        if not ORIGIN_FORM.fullmatch(origin):
            document.problem(("cors", "origins", position), "expected an origin (https://app.example) or `*`")
    _check_database(document, file.database)
    check_sign_on(document, file.sign_on)
    retries, breaker = file.retries, file.breaker
    _check_order(document, "retries", ("backoff", retries.backoff), ("max_backoff", retries.max_backoff))
    _check_order(document, "breaker", ("rest", breaker.rest), ("max_rest", breaker.max_rest))


def _check_database(document: YamlDocument, database: str) -> None:
    if database != "sqlite" and scheme(database) not in {"postgresql", "postgres"}:
        document.problem(("database",), "expected `sqlite` or postgresql://USER:PASSWORD@HOST:PORT/DATABASE")


def _check_order(document: YamlDocument, part: str, first: tuple[str, float], bound: tuple[str, float]) -> None:
    """Report the setting `first` of a part of the config if its value exceeds the value of the setting `bound`."""
    (name, value), (bound_name, maximum) = first, bound
    if value <= maximum:
        return
    if not document.has((part, bound_name)):
        document.problem((part, name), f"expected at most `{bound_name}`, which is {maximum:g} unless it is written")
    elif not document.has((part, name)):
        document.problem((part, bound_name), f"expected at least `{name}`, which is {value:g} unless it is written")
    else:
        document.problem((part, name), f"expected at most `{bound_name}`")


def _tls(entry: Tls, directory: PurePath) -> Tls:
    return Tls(
        certificate=str(directory / entry.certificate),
        key=str(directory / entry.key),
        client_ca=str(directory / entry.client_ca) if entry.client_ca is not None else None,
    )


def _discovery(document: YamlDocument, entry: _DiscoveryEntry) -> Discovery:
    if entry.interval is None:
        return Discovery(wait=entry.wait)
    return Discovery(interval=duration(document, ("discovery", "interval"), entry.interval), wait=entry.wait)


def _keys(document: YamlDocument, entry: _KeysEntry) -> KeySettings:
    if entry.max_stale is None:
        return KeySettings()
    return KeySettings(max_stale=duration(document, ("keys", "max_stale"), entry.max_stale))


def _metrics(document: YamlDocument, entry: _MetricsEntry) -> MetricsAccess:
    return MetricsAccess(
        address=address(document, ("metrics", "address"), entry.address) if entry.address is not None else None,
        key=token(document, ("metrics", "key"), entry.key) if entry.key is not None else None,
        key_labels=entry.key_labels,
    )


def _egress(document: YamlDocument, entry: _EgressEntry, proxies: ProxyRules) -> EgressRules:
    places = list[NetworkPlace]()
    for position, text in enumerate(entry.allow):
        try:
            places.append(parse_place(text))
        except ValueError:
            expected = (
                "expected a host, `*.domain`, an address or a network, each optionally with a port: 10.0.0.0/8:8080"
            )
            document.problem(("egress", "allow", position), expected)
    max_bytes = EgressRules.max_bytes
    if entry.max_bytes is not None:
        max_bytes = body_size(document, ("egress", "max_bytes"), entry.max_bytes)
    rules = EgressRules(tuple(places), entry.http, max_bytes, entry.timeout)
    if entry.proxy is None:
        return rules
    path = ("egress", "proxy")
    return replace(rules, proxies=proxies.with_proxy(url(document, path, entry.proxy, user=True), ".".join(path)))


def _blobs(document: YamlDocument, entry: _BlobsEntry) -> BlobStorage:
    if entry.url is not None and not BUCKET_URL.fullmatch(entry.url):
        document.problem(("blobs", "url"), "expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX")
    endpoint = None
    if entry.endpoint is not None:
        endpoint = url(document, ("blobs", "endpoint"), entry.endpoint)
        if entry.url is None or not entry.url.startswith("s3://"):
            document.problem(("blobs", "endpoint"), "expected it only with an s3:// `url`")
    retention = _retention(document, "blobs", entry, Config.blobs)
    return BlobStorage(
        ttl=retention.ttl, max_bytes=retention.max_bytes, enabled=retention.enabled, url=entry.url, endpoint=endpoint
    )


def _tasks(document: YamlDocument, entry: _TasksEntry) -> VideoTaskConfig:
    default = Config.tasks
    return VideoTaskConfig(
        ttl=duration(document, ("tasks", "ttl"), entry.ttl) if entry.ttl is not None else default.ttl,
        max_bytes=(
            store_size(document, ("tasks", "max_bytes"), entry.max_bytes)
            if entry.max_bytes is not None
            else default.max_bytes
        ),
        concurrency=entry.concurrency,
        polls_per_second=entry.polls_per_second,
    )


def _usage(document: YamlDocument, entry: _UsageEntry, database: str) -> UsageRetention:
    default = Retention(ttl=Config.usage.ttl, max_bytes=Config.usage.max_bytes or 0)
    retention = _retention(document, "usage", entry, default)
    is_limited = entry.max_bytes is not None or database == "sqlite"
    totals_ttl = Config.usage.totals_ttl
    if entry.totals_ttl is not None:
        totals_ttl = duration(document, ("usage", "totals_ttl"), entry.totals_ttl)
        if totals_ttl < retention.ttl:  # reports read the totals, and would count a part of the records
            document.problem(("usage", "totals_ttl"), f"expected at least the {retention.ttl} seconds of `usage.ttl`")
    return UsageRetention(
        ttl=retention.ttl,
        max_bytes=retention.max_bytes if is_limited else None,
        totals_ttl=totals_ttl,
        enabled=retention.enabled,
    )


def _retention(document: YamlDocument, key: str, entry: _RetentionEntry, default: Retention) -> Retention:
    return Retention(
        ttl=duration(document, (key, "ttl"), entry.ttl) if entry.ttl is not None else default.ttl,
        max_bytes=(
            store_size(document, (key, "max_bytes"), entry.max_bytes)
            if entry.max_bytes is not None
            else default.max_bytes
        ),
        enabled=entry.enabled,
    )
