"""Connections of LiteLLM's deployments to clouds, whose addresses and credentials depend on the account."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from urllib.parse import urlsplit

from umg_grpc.config.importers.bedrock_arns import IMPORTED_ID, BedrockResource, bedrock_resource
from umg_grpc.config.importers.litellm.channel_connections import (
    DeploymentConnection,
    base_of,
    named_protocols,
    preset_for,
    served_ids,
    with_credentials,
    with_headers,
)
from umg_grpc.config.importers.litellm.litellm_facts import rewritten
from umg_grpc.config.importers.litellm.model_providers import SourceModel
from umg_grpc.config.importers.tracked_source_config import SourceMapping
from umg_grpc.config.importers.unserved_models import (
    CONVERSE_ADVICE,
    IMPORTED_MODEL,
    PROFILE_ADVICE,
    RESULT_PHRASES,
    VERTEX_MAKERS,
    unserved_at_bedrock,
)
from umg_grpc.knowledge.cloud_credentials import token_scope
from umg_grpc.knowledge.cloud_vector_models import vector_model
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider

DEPLOYMENT_URL = re.compile(r"(.*?)/openai/deployments/([^/]+)(?:/.*)?")
ENDPOINT_ID = re.compile(r"(?:.*/)?[0-9]{5,}")
"""Id of an account's endpoint at Vertex AI, used in place of a model id."""
VERTEX_ENDPOINTS = "endpoints of an account at Vertex AI have an address of their own, which is not called"
VERTEX_COMMENT = (
    "the credentials are those that Google's library finds, as in GOOGLE_APPLICATION_CREDENTIALS; a file of its own is"
    " `auth: {kind: google, file: FILE}`"
)
FOUNDRY_HOSTS = (".services.ai.azure.com",)
AZURE_HEADER_HOSTS = (*FOUNDRY_HOSTS, ".openai.azure.com", ".cognitiveservices.azure.com")
RANKING_PROTOCOLS = ["rerank"]
RANKINGS_PATH = urlsplit(PROVIDER_PRESETS["azure-foundry"].base_urls["rerank"]).path
ANY_MAKER = "bedrock-converse"
"""Preset whose API can call a model by an ARN that does not show the maker of the model."""
API_KEY_HEADER = {"kind": "header", "header": "api-key"}
AWS_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
AWS_KEY_COMMENT = "the key is AWS_BEARER_TOKEN_BEDROCK; `auth: {kind: aws}` takes what AWS's library finds instead"
AWS_ROLE_KEYS = {"aws_role_name": "role_arn", "aws_session_name": "role_session_name", "aws_external_id": "external_id"}
"""Setting of LiteLLM for an AWS role -> key of `auth: {kind: aws}`."""
IDENTITY_FILE = "oidc/file/"
"""Prefix of a setting that names a file; the content of the file is the token."""
ENTRA_KEYS = ("tenant_id", "client_id", "client_secret")
ENTRA_SCOPE = "https://cognitiveservices.azure.com/.default"
"""Scope of the Entra ID tokens that LiteLLM requests for every host."""


def _azure(model: SourceModel, _: str, params: SourceMapping) -> list[DeploymentConnection] | str:
    preset = preset_for(model.provider, model.operation)
    if preset is None:
        return f"`azure` serves no {RESULT_PHRASES[model.operation]} here"
    base, name = _without_deployment(base_of(params))
    upstream = model.model or name
    if not upstream:
        return "`azure/` names no deployment"
    keys: dict[str, object] = {"provider": preset.name, "base_url": _resource(base, "AZURE_API_BASE", "/openai/v1")}
    if model.protocol and model.protocol != preset.protocols[0]:
        keys["protocols"] = [model.protocol]
    keys, comments = _with_azure_key(keys, model, preset, params)
    return [DeploymentConnection("azure", keys, upstream, comments=comments, role=_first_label(base))]


def _azure_ai(model: SourceModel, public: str, params: SourceMapping) -> list[DeploymentConnection] | str:
    """Return the connections to Foundry: Claude models in Anthropic's format, all other models in OpenAI's format."""
    if not model.model:
        return "`azure_ai/` names no model"
    base = base_of(params)
    if "*" not in model.model:
        return _foundry(model, base, params, is_claude="claude" in model.model.lower())
    if model.model != "*":
        return _foundry(model, base, params, is_claude=model.model.startswith("claude"))
    claude = _foundry(model, base, params, is_claude=True)
    others = _foundry(model, base, params, is_claude=False)
    if isinstance(claude, str) or isinstance(others, str):
        return others
    (of_claude,) = claude
    return [replace(of_claude, model="claude*", public=public.replace("*", "claude*")), *others]


def _foundry(
    model: SourceModel, base: str, params: SourceMapping, *, is_claude: bool
) -> list[DeploymentConnection] | str:
    parts = urlsplit(base)
    plain = base.partition("?")[0].rstrip("/")
    is_foundry = (parts.hostname or "").endswith(FOUNDRY_HOSTS) or "$" in base or not base
    keys: dict[str, object]
    if is_claude:
        root = plain.partition("/anthropic")[0]
        keys = {"protocols": ["messages"], "base_url": _resource(root, "AZURE_AI_API_BASE", "/anthropic/v1")}
    else:
        protocols = named_protocols(("chat", "embeddings", "rerank"), model.operation)
        if not protocols:
            return f"`azure_ai` serves no {RESULT_PHRASES[model.operation]} here"
        plain = re.sub(r"/(?:chat/completions|embeddings|(?:v[12]/)?rerank)$", "", plain)
        if is_foundry:  # also in place of /models, an API that Microsoft shut down in August 2026
            path = RANKINGS_PATH if protocols == RANKING_PROTOCOLS else "/openai/v1"
            plain = _resource(plain, "AZURE_AI_API_BASE", path)
        elif protocols == RANKING_PROTOCOLS and not plain.endswith(("/v1", "/v2")):
            plain += "/v1"
        keys = {"protocols": protocols, "base_url": plain}
    keys, comments = _with_azure_key(keys, model, None, params)
    if "auth" not in keys and (is_claude or is_foundry or (parts.hostname or "").endswith(AZURE_HEADER_HOSTS)):
        keys["auth"] = API_KEY_HEADER
    role = _first_label(base)
    return [
        DeploymentConnection(
            "azure-anthropic" if is_claude else "azure-ai", keys, model.model, comments=comments, role=role
        )
    ]


def _with_azure_key(
    keys: dict[str, object], model: SourceModel, preset: Provider | None, params: SourceMapping
) -> tuple[dict[str, object], tuple[str, ...]]:
    if not params.has("api_key") and (auth := _entra_auth(params, str(keys["base_url"]))):
        keys["auth"] = auth
        return with_headers(keys, params), ()
    if not params.has("api_key") and (token := params.text("azure_ad_token")):
        keys |= {"auth": {"kind": "bearer"}, "api_key": token}
        renewed = "this token of Entra ID ends after about an hour; `auth: {kind: azure}` renews it"
        return with_headers(keys, params), (renewed,)
    return with_credentials(keys, model.provider, preset, params), ()


def _entra_auth(params: SourceMapping, base_url: str) -> dict[str, object] | None:
    """Take the Entra ID login of an application, and return it as `auth`; None if there is none."""
    if not all(params.has(name) for name in ENTRA_KEYS):
        return None
    auth: dict[str, object] = {"kind": "azure", **{name: params.text(name) for name in ENTRA_KEYS}}
    scope = params.text("azure_scope")
    if scope or token_scope(urlsplit(base_url).hostname or "") is None:
        auth["scope"] = scope or ENTRA_SCOPE
    return auth


def _resource(base: str, variable: str, path: str) -> str:
    if not base or base.startswith("$"):
        return f"{base or f'${{{variable}}}'}{path}"
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc}{path}" if parts.netloc else f"{base}{path}"


def _without_deployment(base: str) -> tuple[str, str]:
    match = DEPLOYMENT_URL.fullmatch(base)
    return (match[1], match[2]) if match is not None else (base, "")


def _bedrock(model: SourceModel, public: str, params: SourceMapping) -> list[DeploymentConnection] | str:
    if not model.model:
        return "`bedrock/` names no model"
    named = "" if "*" in model.model else rewritten(model.provider, params.text("model_id"))[0]
    resource = bedrock_resource(named or model.model)
    presets = _bedrock_presets(model, resource, public)
    if isinstance(presets, str):
        return presets
    base = base_of(params) or params.text("aws_bedrock_runtime_endpoint").rstrip("/")
    region = params.text("aws_region_name") or model.region or resource.region or "${AWS_REGION}"
    pair = [params.text(name) for name in AWS_KEYS if params.has(name)]
    auth = _aws_auth(params) if not pair and not params.has("api_key") else None
    is_exact = resource.is_nameless or bool(model.protocol and "*" not in resource.model)
    found = []
    for preset in presets:
        url = f"{base}{urlsplit(preset.base_url).path}" if base else preset.address(region)
        keys: dict[str, object] = {"provider": preset.name, "base_url": url}
        if pair:
            keys |= {"auth": {"kind": "access_key", "scheme": "aws"}, "api_key": ":".join(pair)}
            keys = with_headers(keys, params)
        elif auth:
            keys = with_headers(keys | {"auth": auth}, params)
        else:
            keys = with_credentials(keys, model.provider, preset, params)
        comments = () if "api_key" in keys or "auth" in keys else (AWS_KEY_COMMENT,)
        role = "" if "$" in url else region
        found += [
            DeploymentConnection(
                preset.name, keys, upstream, shown, comments, role, "" if "*" not in model.model else CONVERSE_ADVICE
            )
            for upstream, shown in ([(resource.model, "")] if is_exact else served_ids(preset, resource.model, public))
        ]
        if found and "*" not in model.model:
            return found
    return found or _unserved_at_bedrock(model)


def _bedrock_presets(model: SourceModel, resource: BedrockResource, public: str) -> list[Provider] | str:
    """Return the presets for a Bedrock model, the preferred one first, or the reason (a text) why none serves it."""
    if resource.kind == IMPORTED_ID:
        return IMPORTED_MODEL
    presets = [
        preset
        for preset in model.provider.known_presets
        if (not model.operation or named_protocols(preset.protocols, model.operation))
        and (not model.protocol or model.protocol in preset.protocols)
    ]
    if not resource.is_nameless or not presets:
        return presets or _unserved_at_bedrock(model)
    if model.operation in {"generate", ""}:
        return [PROVIDER_PRESETS[ANY_MAKER]]
    (protocol,) = named_protocols(presets[0].protocols, model.operation)
    shown = vector_model(protocol, resource.model, public)
    stated = vector_model(protocol, model.model, "")
    return presets if shown.models and (stated == shown or model.model == resource.model) else PROFILE_ADVICE


def _unserved_at_bedrock(model: SourceModel) -> str:
    if model.operation in {"generate", ""}:
        return unserved_at_bedrock(model.model)
    return f"`bedrock` serves no {RESULT_PHRASES[model.operation]} of this model here"


def _aws_auth(params: SourceMapping) -> dict[str, object] | None:
    """Take the profile, role and identity by which AWS's library gets credentials, and return them as `auth`. None if
    the deployment has none, or its identity is of an unsupported kind.
    """
    auth: dict[str, object] = {}
    if params.has("aws_web_identity_token"):
        token = params.peek("aws_web_identity_token")
        if not params.has("aws_role_name") or not isinstance(token, str) or not token.startswith(IDENTITY_FILE):
            return None
        auth["web_identity_token_file"] = params.text("aws_web_identity_token").removeprefix(IDENTITY_FILE)
    if params.has("aws_profile_name"):
        auth["profile"] = params.text("aws_profile_name")
    if params.has("aws_role_name"):
        auth |= {key: params.text(name) for name, key in AWS_ROLE_KEYS.items() if params.has(name)}
    return {"kind": "aws"} | auth if auth else None


def _mantle(model: SourceModel, _: str, params: SourceMapping) -> list[DeploymentConnection] | str:
    if not model.model or model.operation not in {"generate", ""}:
        return "`bedrock_mantle` serves only texts"
    region = params.text("aws_region_name") or model.region or "${AWS_REGION}"
    base = base_of(params) or f"https://bedrock-mantle.{region}.api.aws/v1"
    keys: dict[str, object] = {"protocols": [model.protocol or "chat"], "base_url": base}
    return [
        DeploymentConnection(
            "bedrock-mantle", with_credentials(keys, model.provider, None, params), model.model, role=region
        )
    ]


def _vertex(model: SourceModel, public: str, params: SourceMapping) -> list[DeploymentConnection] | str:
    if ENDPOINT_ID.fullmatch(model.model):
        return VERTEX_ENDPOINTS
    operation = model.operation
    presets = [
        preset
        for preset in model.provider.known_presets
        if not operation or named_protocols(preset.protocols, operation)
    ]
    if not presets:
        return f"Vertex AI serves {RESULT_PHRASES[operation]} by methods that are not served"
    ids = [
        (preset, upstream, shown) for preset in presets for upstream, shown in served_ids(preset, model.model, public)
    ]
    if not ids:
        return VERTEX_MAKERS
    project = params.text("vertex_project") or "${GOOGLE_CLOUD_PROJECT}"
    region = params.text("vertex_location") or "us-central1"
    further: dict[str, object] = {}
    comments: tuple[str, ...] = (VERTEX_COMMENT,)
    if credentials := _credentials_file(params):
        further["auth"], comments = {"kind": "google", "file": credentials}, ()
    further = with_headers(further, params)
    left = VERTEX_MAKERS if "*" in model.model else ""
    found = []
    for preset, upstream, shown in ids:
        address = preset.address(region, project=project)
        keys: dict[str, object] = {"provider": preset.name, "base_url": address, **further}
        found.append(DeploymentConnection(preset.name, keys, upstream, shown, comments, region, left))
    return found


def _credentials_file(params: SourceMapping) -> str:
    written = params.peek("vertex_credentials")
    return params.text("vertex_credentials") if isinstance(written, str) and not written.startswith("{") else ""


def _first_label(base: str) -> str:
    return (urlsplit(base).hostname or "").partition(".")[0] if "$" not in base else ""


CLOUD_CONVERTERS: Mapping[str, Callable[[SourceModel, str, SourceMapping], list[DeploymentConnection] | str]] = (
    MappingProxyType(
        {"azure": _azure, "azure_ai": _azure_ai, "bedrock": _bedrock, "bedrock_mantle": _mantle, "vertex": _vertex}
    )
)
"""Cloud -> function (model, public id, parameters) that returns the connections of a deployment (several if a pattern
has models of several makers), or the reason (a text) why there is none.
"""
