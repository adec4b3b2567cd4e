"""Config file: every key takes effect, and every mistake is reported with its line."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from redis.asyncio import ConnectionPool

from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.host_list_entries import NetworkPlace, parse_place
from umg_grpc.config import (
    AccessKeyAuth,
    Address,
    BearerAuth,
    BlobStorage,
    Breaker,
    ChannelModel,
    CommandAuth,
    Config,
    ConfigError,
    CorsSection,
    HeaderAuth,
    Limits,
    Log,
    MetricsAccess,
    ModelInfo,
    NoAuth,
    Overload,
    Retention,
    Retries,
    ServiceAccountAuth,
    Timeout,
    built_in,
    parse,
    yaml_document,
)
from umg_grpc.config.channel_credentials import signature_scope
from umg_grpc.config.channel_section import OWN_PROTOCOLS, served_protocols
from umg_grpc.config.config_values import UsageRetention
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.operations.provider_protocols_by_name import key_header
from umg_grpc.routing import Router
from umg_grpc.tokens import TOKENIZER_ROWS
from umg_grpc.wire import TEXT_UPSTREAMS
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.video import VIDEO_PROTOCOLS

WHOLE = """\
public_url: https://gateway.example/
secret: ${UMG_SECRET}
database: postgresql://umg:${PASSWORD}@db.example/umg
cors: {origins: [https://app.example, "*"]}
pages: false
body_limit: 8MiB
limits: {embedding_inputs: 96}
drain: 5.5
stream_headers_after: 7.5
log: {level: debug, format: json}
metrics: {address: "[::1]:9464", key: "${METRICS_KEY}", key_labels: 7}
redis: rediss://:${PASSWORD}@redis.example:6380/2
retries: {repeats: 3, backoff: 0.5, budget: 0}
breaker: {failures: 10, rest: 1}
overload: {calls: 100, queue: 0, lag: 0.05}
cache_bytes: 128MiB
aliases: {fast: model-a, thinker: famG-2.5-pro-thinking-low}
responses: {ttl: 12h, max_bytes: 2GiB}
reasoning: {enabled: false}
channels:
  - name: main
    protocols: [responses, chat]
    base_url: https://provider.example/v1/
    api_key: ${PROVIDER_KEY}
    headers: {x-team: search, x-literal: "$${NOT_A_VARIABLE}"}
    proxy: http://user:${PASSWORD}@proxy.example:3128
    ca_file: certificates/ca.pem
    priority: 1
    weight: ${WEIGHT}
    quirks: {web_search: true, search_with_functions: drop, max_user_characters: 128}
    timeout: {connect: 2, total: 90}
    concurrency: 32
    models: [model-a, {id: public-name, upstream: real/name, family: famG}]
  - name: spare
    protocols: [chat]
    base_url: http://10.0.0.1:8000
    api_key: [0123, spare-key]
    auth: {kind: header, header: x-api-key}
    timeout: 7
    shared_objects: true
    models: [model-a]
  - {name: open, protocols: [chat], base_url: "http://[::1]:8000/v1", auth: {kind: none}, models: [model-b]}
  - {name: keyless, protocols: [chat], base_url: http://host/v1, models: [model-b]}
  - {name: vectors, protocols: [native_embeddings, rerank], base_url: http://host/v1, max_inputs: 100, models: [model-c]}
  - {name: here, protocols: [local], weight: 0, models: [{id: gpt-4o, upstream: smollm2-135m-instruct}]}
  - name: simulated
    protocols: [sandbox]
    pace: 0
    models: [famC-sonnet-4-5, {id: gpt-5, upstream: famO-5}, "famG-*", {id: "play/*", upstream: "famQ-*"}]
    concurrency: 4
models:
  model-a: {owned_by: lab, created: 2024-11-01, display_name: Model A, family: famQ}
  gpt-4o: {created: 1730419200, tokenizer: smollm2}
  famG-3-pro: {hedge: 1.5, cache: 10m}
  model-b:
"""
ENVIRONMENT = {"UMG_SECRET": "0123456789abcdef", "PASSWORD": "pass-word", "PROVIDER_KEY": "sk-1", "WEIGHT": "3"}
ENVIRONMENT["METRICS_KEY"] = "scraper-0123456789"


@pytest.fixture
def whole() -> Config:
    return parse(WHOLE, "/etc/umg/umg.yaml", ENVIRONMENT)


def test_the_whole_contract_is_read(whole: Config) -> None:
    assert whole.public_url == "https://gateway.example"
    assert whole.secret == "0123456789abcdef"
    assert whole.database == "postgresql://umg:pass-word@db.example/umg"
    assert whole.cors == CorsSection(origins=("https://app.example", "*"))
    assert not whole.pages
    assert (whole.body_limit, whole.drain) == (8 * 1024 * 1024, 5.5)
    assert whole.limits == Limits(embedding_inputs=96, rerank_documents=1000)
    assert whole.log == Log(level="debug", format="json")
    assert whole.metrics == MetricsAccess(address=Address("::1", 9464), key="scraper-0123456789", key_labels=7)
    assert whole.redis == "rediss://:pass-word@redis.example:6380/2"
    assert whole.retries == Retries(repeats=3, backoff=0.5, max_backoff=2, budget=0)
    assert whole.breaker == Breaker(failures=10, share=0.5, window=30, rest=1, max_rest=300)
    assert whole.overload == Overload(calls=100, queue=0, lag=0.05)
    assert whole.cache_bytes == 128 * 1024**2
    assert whole.stream_headers_after == 7.5
    assert whole.aliases == {"fast": "model-a", "thinker": "famG-2.5-pro-thinking-low"}
    assert whole.responses == Retention(ttl=12 * 3600, max_bytes=2 * 1024**3)
    assert whole.reasoning == Retention(ttl=86400, max_bytes=64 * 1024**2, enabled=False)
    names = ["main", "spare", "open", "keyless", "vectors", "here", "simulated"]
    assert [channel.name for channel in whole.channels] == names


def test_a_channel_has_all_that_was_written_of_it(whole: Config) -> None:
    main = whole.channels[0]
    assert main.protocols == ("responses", "chat")
    assert main.base_url == "https://provider.example/v1"
    assert (main.api_keys, main.auth, main.has_explicit_auth) == (("sk-1",), BearerAuth(), False)
    assert main.headers == {"x-team": "search", "x-literal": "${NOT_A_VARIABLE}"}
    assert main.proxy == "http://user:pass-word@proxy.example:3128"
    assert main.ca_file == "/etc/umg/certificates/ca.pem"
    assert (main.priority, main.weight) == (1, 3)
    assert main.timeout == Timeout(connect=2, first_byte=60, idle=60, total=90)
    assert main.models == (
        ChannelModel("model-a", "model-a", None),
        ChannelModel("public-name", "real/name", "famG"),
    )


def test_several_keys_a_header_and_a_plain_timeout(whole: Config) -> None:
    spare = whole.channels[1]
    assert (spare.api_keys, spare.auth) == (("0123", "spare-key"), HeaderAuth(header="x-api-key"))
    assert spare.has_explicit_auth
    assert spare.timeout == Timeout(first_byte=7)


def test_only_channels_with_an_account_have_objects_of_their_own(whole: Config) -> None:
    shared = {channel.name for channel in whole.channels if channel.shared_objects}
    assert shared == {"spare", "here", "simulated"}


def test_no_key_means_no_auth(whole: Config) -> None:
    assert [(channel.api_keys, channel.auth) for channel in whole.channels[2:4]] == [((), NoAuth())] * 2
    assert [channel.has_explicit_auth for channel in whole.channels[2:4]] == [True, False]


def test_a_channel_has_a_limit_of_texts_in_one_request(whole: Config) -> None:
    vectors = whole.channels[4]
    assert (vectors.protocols, vectors.max_inputs) == (("native_embeddings", "rerank"), 100)
    assert {channel.max_inputs for channel in whole.channels if channel is not vectors} == {None}


def test_a_channel_lists_the_restrictions_of_its_provider(whole: Config) -> None:
    written = {channel.name: channel.quirks for channel in whole.channels if channel.quirks != NO_QUIRKS}
    assert written == {"main": Quirks(web_search=True, search_with_functions="drop", max_user_characters=128)}
    assert {channel.name: channel.prompt_caching for channel in whole.channels} == dict.fromkeys(
        [channel.name for channel in whole.channels], "auto"
    )
    silent = CHANNEL.replace("[chat]", "[messages]") + "  prompt_caching: off"
    assert parse(silent, "umg.yaml", {}).channels[0].prompt_caching == "off"


def test_a_channel_has_a_limit_of_concurrent_calls(whole: Config) -> None:
    bounds = {channel.name: channel.concurrency for channel in whole.channels if channel.concurrency}
    assert bounds == {"main": 32, "simulated": 4}


def test_a_simulated_channel_has_a_pace_and_aliases(whole: Config) -> None:
    simulated = whole.channels[6]
    assert (simulated.protocols, simulated.pace, simulated.base_url) == (("sandbox",), 0, "")
    assert simulated.models == (
        ChannelModel("famC-sonnet-4-5", "famC-sonnet-4-5", None),
        ChannelModel("gpt-5", "famO-5", None),
        ChannelModel("famG-*", "famG-*", None),
        ChannelModel("play/*", "famQ-*", None),
    )
    assert Router(whole).resolve("gpt-5").model.family == "famO"


def test_a_simulated_channel_streams_50_tokens_a_second_by_default() -> None:
    assert parse("channels: [{name: s, protocols: [sandbox], models: [famO-5]}]", "f", {}).channels[0].pace == 50


def test_models_are_described_by_their_public_id(whole: Config) -> None:
    released = datetime(2024, 11, 1, tzinfo=UTC)
    assert whole.models == {
        "model-a": ModelInfo(owned_by="lab", display_name="Model A", create_time=released, family="famQ"),
        "gpt-4o": ModelInfo(create_time=released, tokenizer="smollm2"),
        "famG-3-pro": ModelInfo(hedge=1.5, cache=600),
        "model-b": ModelInfo(),
    }


def test_secrets_are_not_shown(whole: Config) -> None:
    shown = repr(whole)
    assert not [
        secret for secret in ("0123456789abcdef", "pass-word", "sk-1", "spare-key", "scraper") if secret in shown
    ]


def test_the_defaults_are_those_of_the_contract() -> None:
    config = parse("channels: [{name: l, protocols: [local], models: [m]}]", "f", {})
    assert config == Config(channels=config.channels)
    assert (config.body_limit, config.drain, config.database) == (64 * 1024 * 1024, 30, "sqlite")
    assert config.limits == Limits(embedding_inputs=2048, rerank_documents=1000)
    assert (config.aliases, config.redis, config.channels[0].concurrency) == ({}, None, None)
    assert config.retries == Retries(repeats=1, backoff=0.1, max_backoff=2, budget=0.2)
    assert config.breaker == Breaker(failures=5, share=0.5, window=30, rest=5, max_rest=300)
    assert config.overload == Overload(
        None, memory=0.8, queue=256, wait=1, lag=0.2, connections=None, head=10, upload=60
    )
    assert config.cache_bytes == 64 * 1024**2
    assert config.stream_headers_after == 15
    assert config.responses == Retention(ttl=30 * 86400, max_bytes=1024**3, enabled=True)
    assert config.blobs == BlobStorage(ttl=86400, max_bytes=10 * 1024**3, enabled=True, url=None, endpoint=None)
    assert config.reasoning == Retention(ttl=86400, max_bytes=64 * 1024**2, enabled=True)
    assert config.channels[0].timeout == Timeout(connect=5, first_byte=60, idle=60, total=600)


@dataclass(frozen=True)
class UsageCase:
    """Config of a gateway, and the size limit of its usage records."""

    id: str
    text: str
    max_bytes: int | None


USAGE_CASES = [
    UsageCase(id="SQLite has a limit", text="usage: {ttl: 2d}", max_bytes=1024**3),
    UsageCase(id="PostgreSQL has none", text="usage: {ttl: 2d}\ndatabase: postgresql://h/d", max_bytes=None),
    UsageCase(
        id="PostgreSQL has the configured one",
        text="usage: {ttl: 2d, max_bytes: 2GiB}\ndatabase: postgresql://h/d",
        max_bytes=2 * 1024**3,
    ),
]


@pytest.mark.parametrize("case", USAGE_CASES, ids=lambda case: case.id)
def test_only_sqlite_limits_the_size_of_usage_records_by_default(case: UsageCase) -> None:
    config = parse(f"channels: [{{name: a, protocols: [local], models: [m]}}]\n{case.text}", "f", {})
    assert config.usage == UsageRetention(ttl=2 * 86400, max_bytes=case.max_bytes)


def test_the_time_of_totals_of_usage_is_read() -> None:
    config = parse("channels: [{name: a, protocols: [local], models: [m]}]\nusage: {totals_ttl: 400d}", "f", {})
    assert config.usage == UsageRetention(ttl=90 * 86400, max_bytes=1024**3, totals_ttl=400 * 86400)


def test_the_place_of_result_files_is_read() -> None:
    text = "channels: [{name: a, protocols: [local], models: [m]}]\nblobs: "
    read = parse(
        text + "{url: 's3://bucket/a/b', endpoint: 'http://minio:9000/', ttl: 2h, max_bytes: 1GiB}", "f", {}
    ).blobs
    assert read == BlobStorage(ttl=7200, max_bytes=1024**3, url="s3://bucket/a/b", endpoint="http://minio:9000")
    assert parse(text + "{enabled: false}", "f", {}).blobs == replace(Config.blobs, enabled=False)


def test_the_rules_for_urls_of_callers_are_read() -> None:
    read = parse(
        "channels: [{name: a, protocols: [local], models: [m]}]\n"
        "egress: {allow: ['*.Corp:8443', 10.0.0.0/8, 'fd00::/8'], http: true, max_bytes: 1MiB, timeout: 5}",
        "f.yaml",
        {},
    ).egress
    places = (NetworkPlace(".corp", port=8443), parse_place("10.0.0.0/8"), parse_place("fd00::/8"))
    assert read == EgressRules(places, http=True, max_bytes=1 << 20, timeout=5)


def test_a_key_without_a_value_is_an_absent_key() -> None:
    config = parse("secret:\nlog: ~\nchannels: [{name: l, protocols: [local], headers: , models: [m]}]", "f", {})
    assert config == Config(channels=config.channels)


LOCAL_MODELS = ("smollm2-135m-instruct", "wordllama-256", "wordllama-rerank")


def test_the_built_in_config_serves_the_local_models_and_the_simulated_ones() -> None:
    config = built_in()
    local, sandbox = config.channels
    assert (local.name, local.protocols) == ("local", ("local",))
    assert local.models == tuple(ChannelModel(model, model, None) for model in LOCAL_MODELS)
    assert (sandbox.name, sandbox.protocols, sandbox.pace) == ("sandbox", ("sandbox",), 50)
    assert config.models.keys() == {model.id for channel in config.channels for model in channel.models}


def test_the_built_in_config_serves_all_that_is_documented() -> None:
    router = Router(built_in())
    examples = {model: [row.value] for row in UNARY_OPERATIONS.values() for model in row.simulated}
    documented = {model: list(described.operations) for model, described in MODEL_CATALOGUE.items()}
    assert {model.id: list(model.described.operations) for model in router.models()} == documented | examples
    for model in router.models():
        assert model.described.HasField("create_time")


def test_every_simulated_model_is_marked_and_has_the_family_of_its_prefix() -> None:
    models = [model for model in Router(built_in()).models() if model.id not in LOCAL_MODELS]
    assert {model.described.owned_by for model in models} == {"umg-sandbox (simulated)"}
    assert [model.id for model in models if not model.described.display_name.endswith(" (simulated)")] == []
    families = {
        model.id: model.id.split("-")[0][:4] if model.id.startswith(("fam", "img", "vid")) else "" for model in models
    }
    assert {model.id: model.family for model in models} == families


def test_channels_share_keys_by_anchors_and_merges() -> None:
    text = """\
channels:
  - &first {name: a, protocols: [chat], base_url: http://a, timeout: &slow {idle: 9}, models: &models [m]}
  - {<<: *first, name: b}
  - {name: c, protocols: [local], timeout: {<<: *slow, total: 5}, models: *models}
  - {name: d, protocols: [local], timeout: *slow, models: *models}
"""
    channels = parse(text, "f", {}).channels
    assert [(channel.name, channel.base_url) for channel in channels] == [
        ("a", "http://a"),
        ("b", "http://a"),
        ("c", ""),
        ("d", ""),
    ]
    assert [channel.timeout for channel in channels[1:]] == [Timeout(idle=9), Timeout(idle=9, total=5), Timeout(idle=9)]


@dataclass(frozen=True)
class Mistake:
    id: str
    text: str
    expected: tuple[str, ...]
    """Lines of the error, without the file's name."""
    environment: dict[str, str] = field(default_factory=dict)


CHANNEL = "channels:\n- name: a\n  protocols: [chat]\n  base_url: http://a\n  models: [m]\n"
LOCAL = "channels: [{name: a, protocols: [local], models: [m]}]\n"
QUOTES = "put a text that begins with `*`, `&`, `@`, `%` or a backquote in quotes"
SERVED_KEYS = "expected one of name, provider, protocols, models, discover, base_url, account, base_urls, api_key, auth, headers, query, proxy, ca_file, priority, weight, timeout, shared_objects, pace, max_inputs, quirks, "
SERVED = f"one of {', '.join(served_protocols())}"
FILE_KEYS = "expected one of channels, models, aliases, fallbacks, guards, public_url, secret, accepted_secrets, database, redis, cors, pages, body_limit, limits, retries, breaker, overload, cache_bytes, stream_headers_after, drain, drain_delay, shipped_prices, price_file, unpriced, discovery, keys, sign_on, tls, log, metrics, egress, responses, reasoning, usage, blobs"
MODEL = "expected a model id: up to 256 characters without spaces, at most one of them `*`"
ALIAS = "expected a name of up to 256 characters without spaces or `*`"
STANDS_FOR = "expected the id of a model that some channel serves, or one with a suffix"
PATTERNS = """\
channels:
- {name: a, protocols: [chat], base_url: http://a, models: [m]}
- {name: b, protocols: [chat], base_url: http://a, models: ["famG-*"]}
- {name: c, protocols: [chat], base_url: http://a, models: [{id: "vendor/*", upstream: "*"}]}
models: {vendor/x: {owned_by: lab}}
"""
REFUSED_PLACES = (
    *("localhost:6379", "http://localhost", "''", "redis://", "redis:///0", "redis://:6379/0", '"redis://["'),
    *("redis://h:abc/0", "redis://h:0", "redis://h:65536/0", "redis://h/abc", "redis://h/-1", "redis://h/0/1"),
    *("redis://h/%30", '"redis://h/ 0"', "redis://:pass#word@h/0", "redis://h/0#a", "redis://user:pass@"),
    *("rediss://h:abc/0", "unix://", "unix:///", "unix://run/redis.sock"),
)
REFUSED_OPTIONS = (
    *("unix:///x?db=abc", "redis://h?db=", "redis://h?db=-1", "redis://h/0?db=1&db=a", "redis://h?password="),
    *("redis://h/0?socket_timeout=abc", "redis://h/0?socket_timeout=1", "redis://h?max_connections=1", "redis://h?x=1"),
    *("redis://h?ssl_cert_reqs=none", "rediss://h?ssl_cert_reqs=maybe", "rediss://h?ssl_check_hostname=perhaps"),
)
REDIS_OPTIONS = "expected nothing behind `?` but good values of db, username, password"
URL = "expected a URL, http:// or https:// with a host and without a query"
SIZE = "expected a number of bytes or a size like 64MiB, at most 1023MiB"
BUCKET = "expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"
PLACE = "expected a host, `*.domain`, an address or a network, each optionally with a port: 10.0.0.0/8:8080"
AT_LOCAL = [
    ("an unknown key", "limit: 5", 2, "limit: `limit` is not known here; did you mean `limits`?"),
    ("no bucket", "blobs: {url: https://minio.example/b}", 2, f"blobs.url: {BUCKET}"),
    ("a bucket without a name", "blobs: {url: 's3://'}", 2, f"blobs.url: {BUCKET}"),
    ("an endpoint of another cloud", "blobs: {url: 'gs://bucket', endpoint: 'https://minio.example'}", 2,
     "blobs.endpoint: expected it only with an s3:// `url`"),
    ("an endpoint of no URL", "blobs: {url: 's3://bucket', endpoint: minio}", 2, f"blobs.endpoint: {URL}"),
    ("an endpoint alone", "blobs: {endpoint: 'http://minio'}", 2, "blobs.endpoint: expected it only"),
    ("a switch that is none", "egress: {http: maybe}", 2, "egress.http: expected true or false"),
    ("no time at all", "egress: {timeout: 0}", 2, "egress.timeout: expected a number > 0"),
    ("too large a file", "egress: {max_bytes: 2GiB}", 2, f"egress.max_bytes: {SIZE}"),
    ("an address of metrics without a host", "metrics:\n  address: :9464", 3,
     "metrics.address: expected HOST:PORT, such as 127.0.0.1:9464 or [::1]:9464; port 0 is any free one"),
    ("a short key of metrics", "metrics: {key: short}", 2, "metrics.key: expected text of length >= 16"),
    ("too many labels of keys", "metrics: {key_labels: 1001}", 2, "metrics.key_labels: expected a whole number <= 1000"),
    ("a key of metrics that no header can carry", "metrics: {key: 'sixteen and more characters'}", 2,
     "metrics.key: expected ASCII characters without spaces, since it is sent in a header"),
    ("a key that resembles none", "speed: 5", 2, f"speed: `speed` is not known here; {FILE_KEYS}"),
    ("a key twice", "drain: 5\ndrain: 6", 3, "drain: expected once, but it occurs here again"),
    ("a key that is no text", "? [a]\n: b", 2, "expected a key that is plain text"),
    ("a variable without an end", "secret: 0123456789abcdef${KEY", 2,
     "secret: expected ${NAME} with the name of an environment variable; $${ stands for ${ itself"),
    ("limits that are none", "limits: 5", 2, "limits: expected a mapping, got text"),
    ("a video family in another spelling", "models: {m: {family: VIDA}}", 2, "models.m.family: expected `vidA`, in this spelling"),
    ("a family that is no short name", "models: {m: {family: a b}}", 2,
     "models.m.family: expected a family such as famG: up to 32 letters, digits, `.`, `_` or `-`"),
    ("an unknown tokenizer", "models: {m: {tokenizer: o200k}}", 2, f"models.m.tokenizer: expected one of {', '.join(TOKENIZER_ROWS)}"),
    *(
        (f"a role in an empty {account}", f"sign_on: {{issuers: [{{name: a, issuer: 'https://a', client_id: u, roles: [{{value: x, role: owner, {account}: ''}}]}}]}}", 2,
         f"sign_on.issuers[0].roles[0].{account}: expected text of length >= 1")
        for account in ("project", "organization")
    ),
    ("totals of usage that end before its records", "usage: {ttl: 90d, totals_ttl: 30d}", 2,
     "usage.totals_ttl: expected at least the 7776000 seconds of `usage.ttl`"),
    ("a store without room", "reasoning: {max_bytes: 0}", 2, "reasoning.max_bytes: expected a number of bytes or a size like 1GiB, at most 1024TiB"),
    ("a switch that is neither on nor off", "responses: {enabled: maybe}", 2, "responses.enabled: expected true or false, got text"),
    ("aliases that are a list", "aliases: [m]", 2, "aliases: expected a mapping, got a list"),
    ("a database of no host", "database: postgresql://[", 2, "database: expected `sqlite` or "),
    ("no room for answers", "cache_bytes: 0", 2, "cache_bytes: expected a number of bytes or a size like 1GiB, at most 1024TiB"),
    ("another database", "database: mysql://a/b", 2, "database: expected `sqlite` or postgresql://USER:PASSWORD@HOST:PORT/DATABASE"),
    ("a size in words", "body_limit: big", 2, f"body_limit: {SIZE}"),
    ("no size", "body_limit: 0", 2, f"body_limit: {SIZE}"),
    ("too large a size", "body_limit: 1GiB", 2, f"body_limit: {SIZE}"),
    ("a long drain", "drain: 3601", 2, "drain: expected a number <= 3600.0"),
    ("an unknown log level", "log: {level: loud}", 2, "log.level: expected one of debug, info, warning, error"),
    ("an origin with a path", "cors:\n  origins:\n  - https://a/b", 4, "cors.origins[0]: expected an origin (https://app.example) or `*`"),
    ("a bad public_url", "public_url: gateway", 2, f"public_url: {URL}"),
    ("a description of a model that no channel serves", "models:\n  x: {owned_by: lab}", 3,
     "models.x: expected the id of a model that some channel serves"),
    ("a misspelt key of a model", "models:\n  m: {prices: {request: 5}}", 3, "models.m.prices: `prices` is not known here; did you mean `price`?"),
    ("a date that is none", "models: {m: {created: yesterday}}", 2,
     "models.m.created: expected a date (2024-11-01), an ISO 8601 time or Unix seconds"),
]  # fmt: skip
"""Lines below `LOCAL`, and the problem with the number of its line."""
AT_CHANNEL = [
    ("a key of another place", "tokenizer: smollm2", 6, f"tokenizer: `tokenizer` is not known here; {SERVED_KEYS}"),
    ("a price of a channel", "price: {request: 5}", 6, "price: `price` is not known here; did you mean `unpriced`?"),
    ("a misspelt key in a channel", "wieght: 5", 6, "wieght: `wieght` is not known here; did you mean `weight`?"),
    ("a misspelt key of a timeout", "timeout:\n    idel: 5", 7, "timeout.idel: `idel` is not known here; did you mean `idle`?"),
    ("a variable that is not set", "api_key: ${KEY}", 6, "api_key: expected the environment variable KEY to be set"),
    ("a fraction where nothing may stand", "concurrency: 1.5", 6, "concurrency: expected a whole number or nothing, got a fraction"),
    ("a negative weight", "weight: -1", 6, "weight: expected a whole number >= 0"),
    ("a negative timeout", "timeout: -1", 6, "timeout: expected a number > 0.0"),
    ("an endless timeout", "timeout: {idle: .inf}", 6, "timeout.idle: expected a number, got infinity"),
    ("a timeout in words", "timeout: long", 6, "timeout: expected a number or a mapping, got text"),
    ("a header of the wrong type", "headers:\n    b: c\n    a: [b]", 8, "headers.a: expected text, got a list"),
    ("a pace of a real provider", "pace: 50", 6, "pace: expected only of a `sandbox` channel"),
    ("a quirk that is not known", "quirks:\n    web_search: true\n    websearch: true", 8, "quirks.websearch: `websearch` is not known here"),
    ("a quirk of another type", "quirks:\n    max_output_tokens: many", 7, "quirks.max_output_tokens: expected a whole number or nothing, got text"),
    ("a user of too few characters for a hash", "quirks: {max_user_characters: 15}", 6, "quirks.max_user_characters: expected a whole number >= 16"),
    ("a user of more characters than a hash has", "quirks: {min_user_characters: 65, max_user_characters: 128}", 6,
     "quirks.min_user_characters: expected at most 64"),
    ("a search in another way", "quirks: {search_with_functions: maybe}", 6, "quirks.search_with_functions: expected one of send, declare, drop"),
    ("quirks that are no mapping", "quirks: [web_search]", 6, "quirks: expected a mapping, got a list"),
    ("stored prompts of a provider that stores none", "prompt_caching: explicit", 6, "prompt_caching: expected only with native"),
    ("inputs at once of a provider that embeds nothing", "max_inputs: 96", 6, "max_inputs: expected only with one of embeddings, native_embed"),
    ("a bad proxy", "proxy: socks5://a", 6, f"proxy: {URL}"),
    ("no key among keys", "api_key: []", 6, "api_key: expected a key, or a list of at least one"),
    ("auth without a key", "auth: {kind: bearer}", 2, "api_key: expected a key, or a list of at least one"),
    ("a key that is not wanted", "api_key: k\n  auth: {kind: none}", 6, "api_key: expected no key beside `auth: {kind: none}`"),
    ("an unknown kind of auth", "auth: {kind: basic}", 6,
     "auth.kind: expected one of bearer, header, query, none, jwt, access_key, service_account, command"),
    ("an access key without its secret", "api_key: k\n  auth: {kind: access_key}", 6,
     "api_key: expected ACCESS_KEY:SECRET_KEY for this kind of `auth`"),
    ("a token without its secret", "api_key: [a:b, c, 'd:']\n  auth: {kind: jwt}", 6,
     "api_key: expected ACCESS_KEY:SECRET_KEY, or an API key without a colon"),
    ("a key beside a service account", "api_key: k\n  auth: {kind: service_account, file: a.json}", 6,
     "api_key: expected no key beside `auth: {kind: service_account}`"),
    ("a service account without its file", "auth: {kind: service_account}", 6, "auth: expected `file`, which is missing"),
    ("auth without its header", "auth: {kind: header}", 6, "auth: expected `header`, which is missing"),
    ("discovery without a pattern", "discover: true", 6, "discover: expected a pattern in `models`, e.g. `*`, for the models of the provider's list"),
    ("auth by a parameter that is none", "api_key: k\n  auth: {kind: query, parameter: a=b}", 7,
     "auth.parameter: expected the name of a parameter, e.g. key"),
    ("a parameter that carries the key", "api_key: k\n  auth: {kind: query, parameter: key}\n  query: {key: k}", 8,
     "query.key: expected another parameter: this one carries the key"),
    ("a signature without a region", "api_key: a:b\n  auth: {kind: access_key, scheme: aws}", 7,
     "auth: expected `region` and `service`, e.g. us-east-1 and bedrock, which are not in the host of `base_url`"),
    ("an unknown scheme of signatures", "api_key: a:b\n  auth: {kind: access_key, scheme: azure}", 7, "auth.scheme: expected volcengine or aws"),
    ("auth by a program that is none", "auth: {kind: command, command: []}", 6, "auth.command: expected a list of length >= 1"),
    ("a key beside a program", "api_key: k\n  auth: {kind: command, command: [print-token]}", 6,
     "api_key: expected no key beside `auth: {kind: command}`"),
    ("auth by a header that is none", "api_key: k\n  auth: {kind: header, header: x y}", 7,
     "auth.header: expected the name of a header, e.g. x-api-key"),
    ("the key's header written twice", "api_key: k\n  headers:\n    Authorization: other", 8,
     "headers.Authorization: expected another header: this one carries the key"),
    ("a header of the framing", "headers: {Content-Length: 5}", 6, "headers.Content-Length: expected a header that is not HTTP's own framing"),
    ("a header on two lines", 'headers: {a: "b\\nc"}', 6, "headers.a: expected printable ASCII on one line"),
]  # fmt: skip
"""Members of the channel of `CHANNEL`, and the problem in it with the number of its line."""
MISTAKES = [
    *(Mistake(name, LOCAL + text, (f"{line}: {problem}",)) for name, text, line, problem in AT_LOCAL),
    *(
        Mistake(name, f"{CHANNEL}  {text}", (f"{line}: channels[0].{problem}",))
        for name, text, line, problem in AT_CHANNEL
    ),
    Mistake("an empty file", "", ("1: expected a mapping of keys to values",)),
    Mistake("a list", "- a", ("1: expected a mapping of keys to values",)),
    Mistake("not YAML", "a: b\nc: [", ("3: expected YAML: did not find expected node content",)),
    Mistake(
        "a pattern without quotes",
        "channels:\n- {provider: ollama, models: [*]}",
        (f"2: expected YAML: did not find expected alphabetic or numeric character; {QUOTES}",),
    ),
    Mistake(
        "a pattern without quotes that looks like an alias",
        "channels:\n- {provider: ollama, models: [a, *gpt]}",
        (f"2: expected YAML: found undefined alias; {QUOTES}",),
    ),
    Mistake(
        "a tab",
        "channels:\n- provider: ollama\n\tname: a",
        (
            "3: expected YAML: found a tab character that violates indentation; indent by spaces: YAML permits no tabs there",
        ),
    ),
    Mistake(
        "a text with a colon",
        "channels:\n- provider: ollama\n  name: a: b",
        ("3: expected YAML: mapping values are not allowed in this context; put a text with `: ` in it in quotes",),
    ),
    *(
        Mistake(
            f"the URL of a call of {protocol}",
            f"channels:\n- {{name: a, protocols: [{protocol}], base_url: 'http://a/v1{path}/', models: [m]}}",
            (f"2: channels[0].base_url: expected http://a/v1: `{protocol}` adds {path} at each call",),
        )
        for protocol, path in (
            ("chat", "/chat/completions"),
            ("responses", "/responses"),
            ("messages", "/messages"),
            ("native", "/models/gemini-3"),
            ("embeddings", "/embeddings"),
            ("rerank", "/rerank"),
            ("images", "/images/generations"),
            ("vidA", "/videos"),
        )
    ),
    Mistake("two documents", "a: b\n---\nc: d", ("2: expected YAML: but found another document",)),
    Mistake("a control character", "a: \x00", ("1: expected YAML: ",)),
    Mistake("no channels", "drain: 5", ("1: expected `channels`, which is missing",)),
    Mistake("channels that are none", "channels: []", ("1: channels: expected a list of length >= 1",)),
    Mistake("channels of the wrong type", "drain: 5\nchannels: 5", ("2: channels: expected a list, got text",)),
    Mistake("a channel of the wrong type", "channels:\n- a", ("2: channels[0]: expected a mapping of keys to values",)),
    Mistake(
        "places of the allow list that are none",
        LOCAL + "egress:\n  allow:\n  - files.example.com\n  - https://files.example.com\n  - 10.0.0.1/8",
        (f"5: egress.allow[1]: {PLACE}", f"6: egress.allow[2]: {PLACE}"),
    ),
    Mistake(
        "a misspelt protocol",
        "channels: [{name: a, protocols: [Embedings], base_url: http://a, models: [m]}]",
        (f"1: channels[0].protocols[0]: expected {SERVED}; `Embedings` is not a protocol; did you mean `embeddings`?",),
    ),
    Mistake(
        "another name of a protocol",
        "channels: [{name: a, protocols: [claude], base_url: http://a, models: [m]}]",
        (f"1: channels[0].protocols[0]: expected {SERVED}; `claude` is not a protocol; did you mean `messages`?",),
    ),
    Mistake(
        "a provider as a protocol",
        "channels: [{name: a, protocols: [openai], base_url: http://a, models: [m]}]",
        (
            f"1: channels[0].protocols[0]: expected {SERVED}; `openai` is a provider: set `provider: openai` in place of `protocols`",
        ),
    ),
    Mistake(
        "a misspelt provider",
        "channels: [{provider: antropic}]",
        ("1: channels[0].provider: expected a provider that `umg providers` lists; did you mean `anthropic`?",),
    ),
    Mistake(
        "an unknown provider",
        "channels: [{provider: acme}]",
        (
            "1: channels[0].provider: expected a provider that `umg providers` lists; of others, set `protocols` and `base_url`",
        ),
    ),
    Mistake(
        "a provider whose key is nowhere",
        "channels: [{provider: gemini}]",
        ("1: channels[0].api_key: expected a key, here or in the environment as GOOGLE_API_KEY or GEMINI_API_KEY",),
    ),
    Mistake(
        "a provider whose address differs for each account",
        "channels: [{provider: azure, api_key: k}]",
        (
            "1: channels[0].base_url: expected the URL of your account: https://<resource>.openai.azure.com/openai/v1, or `account: {resource: ...}`",
        ),
    ),
    Mistake(
        "a missing key",
        "channels:\n- name: a\n  models: [m]",
        ("2: channels[0]: expected `protocols`, which is missing; `provider` would fill it in",),
    ),
    Mistake(
        "a variable that is no number",
        CHANNEL + "  weight: ${KEY}",
        ("6: channels[0].weight: expected a whole number, got text",),
        {"KEY": "heavy"},
    ),
    *(
        Mistake(f"the whole number {text}", LOCAL + f"retries:\n  repeats: {text}", (f"3: retries.repeats: {why}",))
        for text, why in (
            ("1.5", "expected a whole number, got a fraction"),
            ("-.5", "expected a whole number, got a fraction"),
            ("1.5e-3", "expected a whole number, got a fraction"),
            (".nan", "expected a whole number, got nan, which is no number"),
            (".inf", "expected a whole number, got infinity"),
            ("1e999", "expected a number nearer to 0"),
            ("1.5.2", "expected a whole number, got text"),
        )
    ),
    *(
        Mistake(f"the number {text}", LOCAL + f"drain: {text}", (f"2: drain: {why}",))
        for text, why in (
            (".nan", "expected a number, got nan, which is no number"),
            ("nan", "expected a number >= 0.0, got nan, which is no number"),
            (".inf", "expected a number, got infinity"),
            ("-.INF", "expected a number, got infinity"),
            ("Infinity", "expected a number <= 3600.0, got infinity"),
            ("-1e999", "expected a number nearer to 0"),
            ("1.5.2", "expected a number, got text"),
        )
    ),
    Mistake(
        "a fraction in a list",
        CHANNEL + "models:\n  m: {capabilities: {other_dimensions: [8, 1.5]}}",
        ("7: models.m.capabilities.other_dimensions[1]: expected a whole number, got a fraction",),
    ),
    Mistake(
        "an unknown protocol",
        CHANNEL.replace("[chat]", "[chat, chatt]"),
        (f"3: channels[0].protocols[1]: expected {SERVED}; `chatt` is not a protocol",),
    ),
    Mistake(
        "protocols that are no list",
        CHANNEL.replace("[chat]", "chat"),
        ("3: channels[0].protocols: expected a list, got text",),
    ),
    Mistake(
        "two protocols of videos",
        CHANNEL.replace("[chat]", "[chat, vidA, vidC]"),
        ("3: channels[0].protocols: expected one of vidA and vidC: use a channel for each",),
    ),
    Mistake(
        "two protocols of images",
        CHANNEL.replace("[chat]", "[images, ark_images]"),
        ("3: channels[0].protocols: expected one of images and ark_images: use a channel for each",),
    ),
    Mistake(
        "local among others",
        CHANNEL.replace("[chat]", "[chat, local]"),
        (
            "3: channels[0].protocols: expected `local` alone: it is not reached over the network",
            "4: channels[0].base_url: expected only for an upstream on the network; a `local` channel has none",
        ),
    ),
    Mistake(
        "sandbox among others",
        "channels:\n- name: a\n  protocols: [sandbox, native]\n  models: [m]\n",
        ("3: channels[0].protocols: expected `sandbox` alone: it is not reached over the network",),
    ),
    Mistake(
        "a key of a simulated provider",
        "channels:\n- name: a\n  protocols: [sandbox]\n  models: [m]\n  api_key: k",
        ("5: channels[0].api_key: expected only for an upstream on the network; a `sandbox` channel has none",),
    ),
    Mistake(
        "a negative pace",
        "channels:\n- name: a\n  protocols: [sandbox]\n  models: [m]\n  pace: -1",
        ("5: channels[0].pace: expected a number >= 0.0",),
    ),
    Mistake(
        "quirks of a provider that embeds",
        CHANNEL.replace("[chat]", "[embeddings]") + "  quirks: {web_search: true}",
        ("6: channels[0].quirks: expected only with one of chat, responses, messages, native",),
    ),
    Mistake(
        "quirks of a simulated provider",
        "channels:\n- name: a\n  protocols: [sandbox]\n  models: [m]\n  quirks: {web_search: true}",
        ("5: channels[0].quirks: expected only with one of chat, responses, messages, native",),
    ),
    Mistake(
        "prompt caching in another way",
        CHANNEL.replace("[chat]", "[messages]") + "  prompt_caching: always",
        ("6: channels[0].prompt_caching: expected one of auto, off, explicit",),
    ),
    Mistake(
        "prompt caching of a provider that needs no marks",
        CHANNEL.replace("[chat]", "[responses]") + "  prompt_caching: off",
        ("6: channels[0].prompt_caching: expected only with one of chat, messages, converse",),
    ),
    Mistake(
        "inputs at once of a provider that only ranks",
        CHANNEL.replace("[chat]", "[rerank]") + "  max_inputs: 96",
        ("6: channels[0].max_inputs: expected only with one of embeddings, native_embed",),
    ),
    Mistake(
        "inputs at once of a model on this machine",
        "channels:\n- name: a\n  protocols: [local]\n  models: [m]\n  max_inputs: 96",
        ("5: channels[0].max_inputs: expected only with one of embeddings, native_embed",),
    ),
    Mistake(
        "no inputs at once",
        CHANNEL.replace("[chat]", "[embeddings]") + "  max_inputs: 0",
        ("6: channels[0].max_inputs: expected a whole number >= 1",),
    ),
    Mistake(
        "inputs at once in words",
        CHANNEL.replace("[chat]", "[embeddings]") + "  max_inputs: many",
        ("6: channels[0].max_inputs: expected a whole number or nothing, got text",),
    ),
    *(
        Mistake(f"the limit {limit}", LOCAL + f"limits:\n  {limit}", (f"3: limits.{expected}",))
        for limit, expected in (
            ("embedding_inputs: 0", "embedding_inputs: expected a whole number >= 1"),
            ("embedding_inputs: 1000001", "embedding_inputs: expected a whole number <= 1000000"),
            ("rerank_documents: -1", "rerank_documents: expected a whole number >= 1"),
            ("rerank_documents: all", "rerank_documents: expected a whole number, got text"),
            ("inputs: 5", "inputs: `inputs` is not known here"),
        )
    ),
    Mistake(
        "a family in another spelling",
        CHANNEL.replace("[m]", "\n  - {id: m, family: famo}"),
        ("6: channels[0].models[0].family: expected `famO`, in this spelling",),
    ),
    *(
        Mistake(
            f"the time {time}",
            LOCAL + f"responses: {{ttl: {time}}}",
            ("2: responses.ttl: expected a time like 30d, 12h, 15m or seconds, at most 3650d",),
        )
        for time in ("0", "forever", "1w", "3651d", "1.5h", "-1")
    ),
    *(
        Mistake(
            f"the header of the key of {protocol}, one of several formats",
            CHANNEL.replace("[chat]", f"[chat, {protocol}]") + f"  api_key: k\n  headers: {{{header}: other}}",
            (f"7: channels[0].headers.{header}: expected another header: this one carries the key",),
        )
        for protocol, header in (("messages", "X-Api-Key"), ("native_embeddings", "X-Goog-Api-Key"))
    ),
    Mistake(
        "a channel name twice",
        "channels:\n- {name: a, protocols: [local], models: [m]}\n- {name: a, protocols: [local], models: [m]}",
        ("3: channels[1].name: expected a name of its own; `a` is taken",),
    ),
    Mistake(
        "a channel name with a space",
        CHANNEL.replace("name: a", "name: a b"),
        ("2: channels[0].name: expected up to 64 letters, digits, `.`, `_` or `-`",),
    ),
    Mistake(
        "a model twice in a channel",
        CHANNEL.replace("[m]", "[m, {id: m, upstream: n}]"),
        ("5: channels[0].models[1]: expected an id of its own in this channel; `m` is taken",),
    ),
    *(
        Mistake(f"the model {model!r}", CHANNEL.replace("[m]", f'["{model}"]'), (f"5: channels[0].models[0]: {MODEL}",))
        for model in ("", "a b", "m-*-*", "m" * 257)
    ),
    *(
        Mistake(
            f"the upstream {model!r} of a pattern",
            CHANNEL.replace("[m]", f'[{{id: "m-*", upstream: "{model}"}}]'),
            (f"5: channels[0].models[0]: {MODEL}",),
        )
        for model in ("", "a b", "**")
    ),
    Mistake(
        "an upstream pattern of a single model",
        CHANNEL.replace("[m]", '[{id: m, upstream: "m-*"}]'),
        ("5: channels[0].models[0]: expected a `*` in the id too, for the one in `upstream` to stand for",),
    ),
    Mistake(
        "a pattern twice in a channel",
        CHANNEL.replace("[m]", '["m-*", {id: "m-*", upstream: "*"}]'),
        ("5: channels[0].models[1]: expected an id of its own in this channel; `m-*` is taken",),
    ),
    Mistake(
        "a description of a pattern",
        CHANNEL.replace("[m]", '["m-*"]') + 'models: {"m-*": {owned_by: lab}}',
        ("6: models.m-*: expected the id of a model that some channel serves",),
    ),
    Mistake(
        "an operation that no channel of the pattern can do",
        CHANNEL.replace("[m]", '["m-*"]') + "models: {m-1: {capabilities: {operations: [rerank]}}}",
        ("6: models.m-1.capabilities.operations[0]: expected what a channel of the model can do",),
    ),
    *(
        Mistake(
            f"an alias: {name}", PATTERNS + f'aliases: {{"{alias}": "{model}"}}', (f"6: aliases.{alias}: {expected}",)
        )
        for name, alias, model, expected in (
            ("with a space", "a b", "m", ALIAS),
            ("that is a pattern", "a-*", "m", ALIAS),
            ("that is a model", "m", "famG-1", "expected a name of its own; there is a model of this id"),
            ("that is described", "vendor/x", "m", "expected a name of its own; there is a model of this id"),
            ("of nothing", "fast", "x", STANDS_FOR),
            ("of a pattern", "fast", "vendor/*", STANDS_FOR),
            ("of a suffix behind what has none", "fast", "m-thinking", STANDS_FOR),
            ("of itself", "fast", "fast", "expected the id of a model; `fast` is an alias itself"),
        )
    ),
    Mistake(
        "an alias of an alias",
        PATTERNS + "aliases:\n  fast: m\n  faster: fast",
        ("8: aliases.faster: expected the id of a model; `fast` is an alias itself",),
    ),
    Mistake(
        "aliases of nothing",
        LOCAL + "aliases:\n  x: m\n  y:\n  z: [m]",
        ("4: aliases.y: expected text, got nothing", "5: aliases.z: expected text, got a list"),
    ),
    *(
        Mistake(f"{part}: {written}", LOCAL + f"{part}:\n  {written}", (f"3: {part}.{key}: {expected}",))
        for part, written, expected in (
            ("retries", "repeats: -1", "expected a whole number >= 0"),
            ("retries", "repeats: 101", "expected a whole number <= 100"),
            ("retries", "backoff: 0", "expected a number > 0.0"),
            ("retries", "max_backoff: long", "expected a number, got text"),
            ("retries", "budget: 1.1", "expected a number <= 1.0"),
            ("retries", "attempts: 3", "`attempts` is not known here"),
            ("breaker", "failures: 0", "expected a whole number >= 1"),
            ("breaker", "share: 0", "expected a number > 0.0"),
            ("breaker", "share: 1.5", "expected a number <= 1.0"),
            ("breaker", "window: 0", "expected a number > 0.0"),
            ("breaker", "rest: 86401", "expected a number <= 86400.0"),
            ("breaker", "rest: 301", "expected at most `max_rest`, which is 300 unless it is written"),
            ("breaker", "max_rest: 4.5", "expected at least `rest`, which is 5 unless it is written"),
            ("breaker", "rest: 3\n  max_rest: 2", "expected at most `max_rest`"),
            ("retries", "backoff: 3", "expected at most `max_backoff`, which is 2 unless it is written"),
            ("retries", "max_backoff: 0.05", "expected at least `backoff`, which is 0.1 unless it is written"),
            ("retries", "backoff: 6\n  max_backoff: 5", "expected at most `max_backoff`"),
            ("breaker", "max_rest: 5m", "expected a number, got text"),
            ("overload", "calls: 0", "expected a whole number >= 1"),
            ("overload", "queue: -1", "expected a whole number >= 0"),
            ("overload", "wait: 0", "expected a number > 0.0"),
            ("overload", "lag: 0", "expected a number > 0.0"),
            ("overload", "connections: 0", "expected a whole number >= 1"),
            ("overload", "head: 0", "expected a number > 0.0"),
            ("overload", "upload: 0", "expected a number > 0.0"),
            ("overload", "threads: 5", "`threads` is not known here"),
        )
        for key in (written.split(":")[0],)
    ),
    *(
        Mistake(
            f"the concurrency {number}", CHANNEL + f"  concurrency: {number}", (f"6: channels[0].concurrency: {why}",)
        )
        for number, why in (
            ("0", "expected a whole number >= 1"),
            ("many", "expected a whole number or nothing, got text"),
        )
    ),
    *(
        Mistake(f"the Redis {url}", LOCAL + f"redis: {url}", ("2: redis: expected redis://HOST:PORT/NUMBER, ",))
        for url in REFUSED_PLACES
    ),
    *(Mistake(f"the Redis {url}", LOCAL + f"redis: {url}", (f"2: redis: {REDIS_OPTIONS}",)) for url in REFUSED_OPTIONS),
    Mistake(
        "a Redis by a variable",
        LOCAL + "redis: ${REDIS}",
        (f"2: redis: {REDIS_OPTIONS}",),
        {"REDIS": "redis://h/0?secret-word=secret-value"},
    ),
    Mistake("no models", CHANNEL.replace("[m]", "[]"), ("5: channels[0].models: expected a list of length >= 1",)),
    Mistake(
        "no base_url",
        CHANNEL.replace("  base_url: http://a\n", ""),
        ("2: channels[0].base_url: expected a URL, e.g. https://provider.example/v1",),
    ),
    Mistake(
        "the URL of a channel with a query",
        CHANNEL.replace("http://a", "http://a?b=c"),
        ("4: channels[0].base_url: expected a URL without a query; its parameters go into `query: {NAME: VALUE}`",),
    ),
    *(
        Mistake(f"the URL {url}", CHANNEL.replace("http://a", f'"{url}"'), (f"4: channels[0].base_url: {URL}",))
        for url in (
            "",
            "provider.example/v1",
            "ftp://a",
            "http://",
            "http://a#b",
            "http://[",
            "http://a:x",
            "http://a b",
        )
    ),
    Mistake(
        "credentials in a URL",
        CHANNEL.replace("http://a", "http://user:pass-word@a"),
        ("4: channels[0].base_url: expected a URL without credentials; a key goes into `api_key`",),
    ),
    Mistake(
        "a key with a line end",
        CHANNEL + "  api_key: ${KEY}",
        ("6: channels[0].api_key: expected printable characters without spaces or line ends",),
        {"KEY": "secret-value\n"},
    ),
    Mistake(
        "discovery at a provider without a list",
        "channels: [{name: a, protocols: [vidE], base_url: http://a, models: discover}]",
        ("1: channels[0].models: expected one of the protocols chat, responses, messages, native, embeddings",),
    ),
    Mistake(
        "discovery of the sandbox",
        "channels: [{name: a, protocols: [sandbox], models: [m], discover: true}]",
        ("1: channels[0].discover: expected only for an upstream on the network; a `sandbox` channel has none",),
    ),
    Mistake(
        "a region of the sandbox",
        "channels: [{name: a, protocols: [sandbox], models: [m], price_region: eu}]",
        ("1: channels[0].price_region: expected only for an upstream on the network; a `sandbox` channel has none",),
    ),
    Mistake(
        "a bound of keys that is none",
        CHANNEL + "keys: {max_stale: never}",
        ("6: keys.max_stale: expected a time like 30d, 12h, 15m or seconds, at most 3650d",),
    ),
    Mistake(
        "an interval of discovery that is none",
        CHANNEL + "discovery: {interval: soon}",
        ("6: discovery.interval: expected a time like 30d, 12h, 15m or seconds, at most 3650d",),
    ),
    Mistake(
        "a parameter that cannot be sent",
        CHANNEL + "  query: {'a b': c, d: e f}",
        (
            "6: channels[0].query.a b: expected the name of a parameter, e.g. api-version",
            "6: channels[0].query.d: expected printable ASCII without spaces, which the gateway encodes",
        ),
    ),
    Mistake(
        "a kind of a guard that is a list",
        CHANNEL + "guards: [{name: a, kind: [patterns]}]",
        ("6: guards[0]: expected a mapping with `kind`, one of ",),
    ),
    Mistake(
        "a kind of a receiver that is a list",
        CHANNEL + "alerts: {receivers: {ops: {kind: [slack], url: http://a}}}",
        ("6: alerts.receivers.ops: expected a mapping with `kind`, one of webhook, slack, email",),
    ),
    Mistake(
        "a short secret", LOCAL + "secret: ${KEY}", ("2: secret: expected text of length >= 16",), {"KEY": "short"}
    ),
    Mistake(
        "a value that contains itself",
        "channels: &a [*a]",
        ("1: channels[0]: expected a value that does not contain itself",),
    ),
    Mistake(
        "several mistakes, each in its place",
        "drain: soon\nchannels:\n- {name: a, protocols: [local], models: 5}\n- {name: b, protocols: [chat], models: [m]}\n",
        (
            "1: drain: expected a number, got text",
            "3: channels[0].models: expected a list, got text",
            "4: channels[1].base_url: expected a URL, e.g. https://provider.example/v1",
        ),
    ),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_a_mistake_is_named_by_file_line_path_and_expectation(case: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(case.text, "umg.yaml", case.environment)
    lines = str(caught.value).split("\n")
    assert [line[: len(expected) + 9] for line, expected in zip(lines, case.expected, strict=False)] == [
        f"umg.yaml:{expected}" for expected in case.expected
    ]
    assert len(caught.value.problems) == len(case.expected)
    assert not [value for value in case.environment.values() if value in str(caught.value)]


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        ("redis://h", {"host": "h"}),
        ("redis://h/", {"host": "h"}),
        (
            "redis://user:p%40ss@[::1]:6380/2",
            {"host": "::1", "port": 6380, "db": 2, "username": "user", "password": "p@ss"},
        ),
        ("redis://h?db=3&password=a%20b", {"db": 3, "password": "a b"}),
        ("rediss://h/1?ssl_cert_reqs=none&ssl_check_hostname=false&ssl_ca_certs=/a", {"db": 1, "ssl_ca_certs": "/a"}),
        ("unix:///run/redis.sock", {"path": "/run/redis.sock"}),
        ("unix://user:pass@/run/redis.sock?db=1", {"path": "/run/redis.sock", "db": 1, "password": "pass"}),
    ],
)
def test_a_redis_url_that_is_taken_is_understood_by_its_client(written: str, understood: dict[str, object]) -> None:
    url = parse(LOCAL + f'redis: "{written}"', "f", {}).redis
    assert url == written
    pool = ConnectionPool.from_url(url)
    pool.make_connection()
    assert {name: pool.connection_kwargs[name] for name in understood} == understood


def test_a_first_wait_may_be_as_long_as_the_longest() -> None:
    config = parse(LOCAL + "retries: {backoff: 2}\nbreaker: {rest: 400, max_rest: 400}", "f", {})
    assert (config.retries.backoff, config.breaker.rest) == (2, 400)


def test_the_file_of_a_service_account_is_relative_to_the_config() -> None:
    auth = (
        parse(CHANNEL + "  auth: {kind: service_account, file: keys/a.json}", "/etc/umg/umg.yaml", {}).channels[0].auth
    )
    assert isinstance(auth, ServiceAccountAuth)
    assert auth.file == "/etc/umg/keys/a.json"


@pytest.mark.parametrize(
    ("written", "seconds"), [("30d", 30 * 86400), ("12h", 43200), ("15m", 900), ("45s", 45), ("90", 90)]
)
def test_a_time_is_written_with_its_unit_or_in_seconds(written: str, seconds: int) -> None:
    assert parse(LOCAL + f"responses: {{ttl: {written}}}", "f", {}).responses.ttl == seconds


def test_nothing_is_stored_where_the_operator_disables_it() -> None:
    config = parse(LOCAL + "responses: {enabled: false}", "f", {})
    assert (config.responses.enabled, config.reasoning.enabled) == (False, True)


def test_every_format_is_a_protocol_that_is_served() -> None:
    assert set(served_protocols()) == {*header_of_protocol(), *OWN_PROTOCOLS}


def test_a_key_travels_in_the_header_of_its_format() -> None:
    headers = header_of_protocol()
    assert {name: key_header(name) for name in headers} == headers


def header_of_protocol() -> dict[str, str]:
    """Return the header of the key, by the name of the format in a channel's `protocols`."""
    unary = [codec for row in UNARY_OPERATIONS.values() for codec in row.provider_formats.values()]
    headers = {(codec.protocol, codec.key_header) for codec in unary}
    headers |= {
        (name, codec.key_header) for name, codec in (TEXT_UPSTREAMS | VIDEO_PROTOCOLS | IMAGE_PROTOCOLS).items()
    }
    assert len(dict(headers)) == len(headers), "two faces of a protocol disagree"
    return dict(headers)


def test_only_the_first_of_many_problems_are_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        parse("channels:\n" + "- {provider: acme}\n" * 150, "umg.yaml", {})
    assert len(caught.value.problems) == 150
    *lines, last = str(caught.value).split("\n")
    assert (len(lines), last) == (100, "umg.yaml: and 50 more problems")


def test_aliases_that_repeat_billions_of_values_are_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_document, "MAX_VALUES", 1000)
    text = "a0: &a0 [0, 0]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
    with pytest.raises(ConfigError) as caught:
        parse(text, "umg.yaml", {})
    assert str(caught.value).endswith("expected at most 1,000 values; an alias counts with all values that it repeats")


def test_a_word_directly_behind_the_host_may_be_the_address_of_a_proxy() -> None:
    text = "channels:\n- {name: a, protocols: [messages], base_url: 'http://proxy/messages', models: [m]}"
    assert parse(text, "umg.yaml", {}).channels[0].base_url == "http://proxy/messages"


@pytest.mark.parametrize(
    ("base_url", "auth", "scope"),
    [
        ("https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", "", ("us-east-1", "bedrock")),
        ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn/openai/v1", "", ("cn-north-1", "bedrock")),
        ("https://bedrock-mantle.us-west-2.api.aws/v1", "", ("us-west-2", "bedrock-mantle")),
        ("https://proxy.example/v1", ", region: eu-west-1, service: bedrock", ("eu-west-1", "bedrock")),
    ],
)
def test_region_and_service_of_aws_are_those_of_the_host(base_url: str, auth: str, scope: tuple[str, str]) -> None:
    text = f"channels: [{{name: a, protocols: [chat], base_url: '{base_url}', api_key: 'a:b', models: [m], "
    [channel] = parse(text + f"auth: {{kind: access_key, scheme: aws{auth}}}}}]", "umg.yaml", {}).channels
    assert isinstance(channel.auth, AccessKeyAuth)
    assert signature_scope(channel.auth, channel.base_url) == scope


def test_a_program_with_a_slash_is_relative_to_the_directory_of_the_config() -> None:
    auth = [
        parse(CHANNEL + f"  auth: {{kind: command, command: [{name}, -x]}}", "/etc/umg/umg.yaml", {}).channels[0].auth
        for name in ("./bin/token", "gcloud")
    ]
    assert auth == [CommandAuth(("/etc/umg/bin/token", "-x")), CommandAuth(("gcloud", "-x"))]


@pytest.mark.parametrize(
    ("written", "discovery", "models"),
    [
        ("protocols: [chat], models: discover", "only", ["*"]),
        ("protocols: [chat], models: ['a*'], discover: true", "beside", ["a*"]),
        ("protocols: [chat], models: ['a*']", "off", ["a*"]),
        ("protocols: [chat], models: ['*']", "beside", ["*"]),
        ("protocols: [chat], models: ['*'], discover: false", "off", ["*"]),
        ("protocols: [vidE], models: ['*']", "off", ["*"]),
        ("protocols: [chat], models: [discover]", "off", ["discover"]),
        ("provider: groq, models: discover", "only", ["groq/*"]),
        ("provider: groq", "preset", ["groq/*"]),
        ("provider: groq, discover: false", "off", ["groq/*"]),
        ("provider: groq, discover: true", "beside", ["groq/*"]),
        ("provider: groq, models: [a]", "off", ["a"]),
        ("provider: tei", "known", ["tei/*"]),
    ],
)
def test_the_models_of_a_list_are_wanted_by_name_or_by_a_pattern_for_all(
    written: str, discovery: str, models: list[str]
) -> None:
    text = f"channels: [{{name: a, base_url: http://a, {written}}}]"
    [channel] = parse(text, "umg.yaml", {"GROQ_API_KEY": "k"}).channels
    assert (channel.discovery, [model.id for model in channel.models]) == (discovery, models)
