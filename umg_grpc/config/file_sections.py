"""Sections of the config file that the gateway uses as parsed: the types of their fields contain all checks."""

from typing import Annotated, Literal

import msgspec

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86400)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]


class ConfigEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of the sections of the config file, which reject unknown keys."""


class CorsSection(ConfigEntry, frozen=True):
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
    """Time of a whole image call, in place of the three above: a response begins when the images are made."""


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
    """Authentication by a short-lived token, which is signed for each request. A key is `ACCESS_KEY:SECRET_KEY`; one
    without a colon is sent as it is.
    """


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


class AwsAuth(ConfigEntry, frozen=True, tag="aws", tag_field="kind"):
    """Authentication by AWS signatures, with the credentials that AWS's own library finds: in the environment, in
    shared files, of web identities, containers and instances. Needs the extra `aws`.
    """

    profile: str | None = None
    """Profile of the shared config files; None is that of the environment."""
    role_arn: str | None = None
    """Role to assume with these credentials; None uses them as they are."""
    role_session_name: str | None = None
    """Name of the role's session in AWS's logs; None is `umg-` and the name of the channel."""
    external_id: str | None = None
    """External id that the role demands."""
    web_identity_token_file: str | None = None
    """File with a token of another issuer, with which `role_arn` is assumed in place of AWS credentials."""
    region: str | None = None
    """Region of the endpoint; None is the region in the host of `base_url`."""
    service: str | None = None
    """Name of the service in signatures; None is the service in the host of `base_url`."""


class GoogleAuth(ConfigEntry, frozen=True, tag="google", tag_field="kind"):
    """Authentication by an OAuth token, with the credentials that Google's own library finds: Application Default
    Credentials. Needs the extra `google`.
    """

    file: str | None = None
    """File with credentials of any type that the library reads; None is those of the environment."""
    impersonate: str | None = None
    """E-mail address of a service account to impersonate with these credentials; None if there is none."""
    quota_project: str | None = None
    """Project to which the calls are charged; None is that of the credentials."""
    scopes: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("https://www.googleapis.com/auth/cloud-platform",)
    """Scopes of the tokens that are requested."""


class AzureAuth(ConfigEntry, frozen=True, tag="azure", tag_field="kind"):
    """Authentication by a token of Entra ID, with the credentials that Azure's own library finds:
    `DefaultAzureCredential`, or the identity that the keys name. Needs the extra `azure`.
    """

    tenant_id: str | None = None
    """Tenant of the identity; None is that of the environment."""
    client_id: str | None = None
    """Application, or managed identity if it is the only key; None is that of the environment."""
    client_secret: str | None = None
    """Secret of the application, which needs `tenant_id` and `client_id`."""
    token_file: str | None = None
    """File with a token of another issuer (workload identity), which needs `tenant_id` and `client_id`."""
    authority: str | None = None
    """URL of the authority that issues tokens; None is that of the environment, else of the public cloud."""
    scope: str | None = None
    """Scope of the tokens that are requested; None is the one for the host of `base_url`."""


CloudAuth = AwsAuth | GoogleAuth | AzureAuth
"""Kinds of `auth` whose credentials the library of a cloud finds."""
Auth = (
    BearerAuth
    | HeaderAuth
    | QueryAuth
    | NoAuth
    | JwtAuth
    | AccessKeyAuth
    | ServiceAccountAuth
    | CommandAuth
    | AwsAuth
    | GoogleAuth
    | AzureAuth
)
KEYLESS_AUTH = (NoAuth, ServiceAccountAuth, CommandAuth, AwsAuth, GoogleAuth, AzureAuth)
"""Kinds of `auth` that have no `api_key` beside them."""


class ModelLimits(ConfigEntry, frozen=True):
    """Limits for the calls of a model, shared by all API keys; None is unlimited."""

    rpm: Limit | None = None
    """Calls in any 60 seconds."""
    tpm: Limit | None = None
    """Input and output tokens together in any 60 seconds."""
    concurrency: Limit | None = None
    """Calls in flight."""


class Fallbacks(ConfigEntry, frozen=True):
    """Models that are called in place of a model, in their order, by the cause of its failure. A plain list in place of
    the mapping applies to every cause.
    """

    context: tuple[str, ...] = ()
    """Models for a request that is too long for the model."""
    content: tuple[str, ...] = ()
    """Models for a request whose content the provider refuses."""
    unavailable: tuple[str, ...] = ()
    """Models for a failure of all channels: down, overloaded, rate limited, or too slow, after failover and retries."""
    quota: tuple[str, ...] = ()
    """Models for provider accounts without credit or quota."""


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
