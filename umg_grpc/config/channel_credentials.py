"""Credentials of channels in the config: reads and checks `api_key`, `auth`, `headers` and `query`."""

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import PurePath
from urllib.parse import urlsplit

import msgspec

from umg_grpc.config.file_sections import (
    KEYLESS_AUTH,
    AccessKeyAuth,
    Auth,
    AwsAuth,
    AzureAuth,
    BearerAuth,
    CommandAuth,
    GoogleAuth,
    HeaderAuth,
    JwtAuth,
    NoAuth,
    QueryAuth,
    ServiceAccountAuth,
)
from umg_grpc.config.value_parsers import PRINTABLE_TEXT
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.cloud_credentials import shown_by, token_scope
from umg_grpc.knowledge.provider_presets import SERVICE_ACCOUNT_FILE, Provider

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
HEADER_VALUE = re.compile(r"[ -~\t]*")
PARAMETER_NAME = re.compile(r"[A-Za-z0-9._~$-]{1,64}")
KEY_PAIR = re.compile(r"[^:]+:.+")
AWS_KEY = re.compile(r"[^:]+:[^:]+(?::[^:]+)?")
AWS_HOST = re.compile(
    r"(?:[a-z0-9-]+\.)*?(?P<service>[a-z][a-z0-9-]*)\.(?P<region>[a-z]{2,}(?:-[a-z]+)+-[0-9]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)"
)
AWS_SIGNED_NAMES: Mapping[str, str] = dict.fromkeys(
    ("bedrock-runtime", "bedrock-runtime-fips", "bedrock-agent-runtime", "bedrock-agent-runtime-fips"), "bedrock"
)
"""Service in the host name of AWS -> name of the service in signatures, if the two differ."""
VOLCENGINE_SCOPE = ("cn-north-1", "cv")
FRAMING_HEADERS = frozenset({"connection", "content-length", "transfer-encoding"})


def auth_of(written: Auth | None, api_key: str | list[str] | None) -> Auth:
    """Return the configured `auth`; without it a bearer token if there is a key (formats may change it), else none."""
    return written or (NoAuth() if api_key is None else BearerAuth())


def cloud_auth(preset: Provider, variable: Callable[[str], str | None]) -> Auth | None:
    """Return the `auth` that uses the library of a provider's cloud. None if an API key is set, or the environment
    shows no credentials; for Google none need be visible. `variable`: returns the value of an environment variable.
    """
    if preset.cloud == "google":
        return GoogleAuth(file=variable(SERVICE_ACCOUNT_FILE) or None)
    if not preset.cloud or preset.key_in(variable) is not None or shown_by(preset.cloud, variable) is None:
        return None
    return AwsAuth() if preset.cloud == "aws" else AzureAuth()


def located(auth: Auth, directory: PurePath) -> Auth:
    """Return the `auth` with file paths made absolute, relative to the directory of the config file. A program without
    a slash is unchanged, since it is searched for as in a shell.
    """
    if isinstance(auth, ServiceAccountAuth):
        return msgspec.structs.replace(auth, file=str(directory / auth.file))
    if isinstance(auth, GoogleAuth) and auth.file is not None:
        return msgspec.structs.replace(auth, file=str(directory / auth.file))
    if isinstance(auth, AwsAuth) and auth.web_identity_token_file is not None:
        return msgspec.structs.replace(auth, web_identity_token_file=str(directory / auth.web_identity_token_file))
    if isinstance(auth, AzureAuth) and auth.token_file is not None:
        return msgspec.structs.replace(auth, token_file=str(directory / auth.token_file))
    if isinstance(auth, CommandAuth) and "/" in auth.command[0]:
        return msgspec.structs.replace(auth, command=(str(directory / auth.command[0]), *auth.command[1:]))
    return auth


def signature_scope(auth: AccessKeyAuth | AwsAuth, base_url: str) -> tuple[str, str] | None:
    """Return (region, service) for signatures; None if neither `auth` nor the host of `base_url` states both."""
    is_aws = isinstance(auth, AwsAuth) or auth.scheme == "aws"
    region, service = ("", "") if is_aws else VOLCENGINE_SCOPE
    if is_aws and (match := AWS_HOST.fullmatch(urlsplit(base_url).hostname or "")) is not None:
        region, service = match["region"], AWS_SIGNED_NAMES.get(match["service"], match["service"])
    region, service = auth.region or region, auth.service or service
    return (region, service) if region and service else None


def check_auth(document: YamlDocument, path: Path, auth: Auth, base_url: str) -> None:
    """Report unusable values in the `auth` of the channel at `path`."""
    header = auth.header if isinstance(auth, HeaderAuth | CommandAuth) else None
    if header is not None and (not HEADER_NAME.fullmatch(header) or header.lower() in FRAMING_HEADERS):
        document.problem((*path, "header"), "expected the name of a header, e.g. x-api-key")
    if isinstance(auth, QueryAuth) and not PARAMETER_NAME.fullmatch(auth.parameter):
        document.problem((*path, "parameter"), "expected the name of a parameter, e.g. key")
    if isinstance(auth, CommandAuth) and not all(word and "\0" not in word for word in auth.command[:1]):
        document.problem((*path, "command"), "expected a program and its arguments, e.g. [gcloud, auth, print-token]")
    if isinstance(auth, AccessKeyAuth | AwsAuth) and signature_scope(auth, base_url) is None:
        expected = (
            "expected `region` and `service`, e.g. us-east-1 and bedrock, which are not in the host of `base_url`"
        )
        document.problem(path, expected)
    if isinstance(auth, AwsAuth) and auth.role_arn is None:
        for key in ("role_session_name", "external_id", "web_identity_token_file"):
            if getattr(auth, key) is not None:
                document.problem((*path, key), "expected only beside `role_arn`, the role to assume")
    if isinstance(auth, AzureAuth):
        _check_azure(document, path, auth, base_url)


def _check_azure(document: YamlDocument, path: Path, auth: AzureAuth, base_url: str) -> None:
    """Report keys that the Azure `auth` at `path` needs and lacks, and a host for which no scope is known."""
    for key in ("client_secret", "token_file"):
        if getattr(auth, key) is not None and not (auth.tenant_id and auth.client_id):
            document.problem((*path, key), "expected with `tenant_id` and `client_id` beside it")
    if auth.client_secret is not None and auth.token_file is not None:
        document.problem((*path, "token_file"), "expected only one of `client_secret` and `token_file`")
    if auth.authority is not None and urlsplit(auth.authority).scheme != "https":
        document.problem((*path, "authority"), "expected a URL with https, e.g. https://login.microsoftonline.com")
    if auth.scope is None and token_scope(urlsplit(base_url).hostname or "") is None:
        expected = "expected `scope`, e.g. https://cognitiveservices.azure.com/.default, which the host of `base_url`"
        document.problem(path, f"{expected} does not show")


def api_keys(document: YamlDocument, path: Path, api_key: str | list[str] | None, auth: Auth) -> tuple[str, ...]:
    """Return the API keys of the channel at `path`: one, a list, or none. Report missing and malformed ones."""
    keys = (api_key,) if isinstance(api_key, str) else tuple(api_key or ())
    wants_key = not isinstance(auth, KEYLESS_AUTH)
    if wants_key and not keys:
        document.problem((*path, "api_key"), "expected a key, or a list of at least one")
    elif keys and not wants_key:
        kind = auth.__struct_config__.tag
        document.problem((*path, "api_key"), f"expected no key beside `auth: {{kind: {kind}}}`")
    elif isinstance(auth, AccessKeyAuth) and auth.scheme == "aws":
        if not all(AWS_KEY.fullmatch(key) for key in keys):
            document.problem((*path, "api_key"), "expected ACCESS_KEY_ID:SECRET_ACCESS_KEY, optionally :SESSION_TOKEN")
    elif isinstance(auth, JwtAuth) and not all(KEY_PAIR.fullmatch(key) for key in keys if ":" in key):
        document.problem((*path, "api_key"), "expected ACCESS_KEY:SECRET_KEY, or an API key without a colon")
    elif isinstance(auth, AccessKeyAuth) and not all(KEY_PAIR.fullmatch(key) for key in keys):
        document.problem((*path, "api_key"), "expected ACCESS_KEY:SECRET_KEY for this kind of `auth`")
    if not all(PRINTABLE_TEXT.fullmatch(key) for key in keys):
        document.problem((*path, "api_key"), "expected printable characters without spaces or line ends")
    return keys


def check_headers(
    document: YamlDocument, path: Path, headers: Mapping[str, str], auth: Auth, format_headers: Collection[str]
) -> None:
    """Report headers that cannot be sent, or that would contain the key. `format_headers`: headers for the key if the
    channel has no `auth`.
    """
    match auth:
        case HeaderAuth(header=header) | CommandAuth(header=str(header)):
            taken = {header.lower()}
        case NoAuth() | QueryAuth():
            taken = set[str]()
        case _:  # the other kinds send it where the formats do, or as a bearer token
            taken = set(format_headers) or {"authorization"}
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(name) or name.lower() in FRAMING_HEADERS:
            document.problem((*path, name), "expected a header that is not HTTP's own framing")
        elif name.lower() in taken:
            document.problem((*path, name), "expected another header: this one carries the key")
        elif not HEADER_VALUE.fullmatch(value):
            document.problem((*path, name), "expected printable ASCII on one line")


def check_query(document: YamlDocument, path: Path, query: Mapping[str, str], auth: Auth) -> None:
    """Report configured query parameters that cannot be sent, or that would contain the key."""
    taken = auth.parameter if isinstance(auth, QueryAuth) else None
    for name, value in query.items():
        if not PARAMETER_NAME.fullmatch(name):
            document.problem((*path, name), "expected the name of a parameter, e.g. api-version")
        elif name == taken:
            document.problem((*path, name), "expected another parameter: this one carries the key")
        elif not PRINTABLE_TEXT.fullmatch(value):
            document.problem((*path, name), "expected printable ASCII without spaces, which the gateway encodes")
