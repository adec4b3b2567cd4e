"""Advice to operators about the failure of a provider, with the provider's message."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS

FAILURE_REMEDIES: Mapping[FailureKind, str] = {
    FailureKind.WRONG_KEY: "the provider refuses the key{key}: replace `api_key`, or check `auth`",
    FailureKind.UNPAID: "the account has no credit or quota left: check its bill at the provider",
    FailureKind.WRONG_MODEL: "the provider has no model `{model}`: correct `upstream` of the model",
    FailureKind.WRONG_ADDRESS: "nothing is served at {path} of {host}: {right}",
    FailureKind.UNREADABLE: "the response is no response of the API{type}: check `base_url` and `protocols`",
    FailureKind.CERTIFICATE: "the certificate of {host} is not trusted: set `ca_file`, or correct host and scheme",
    FailureKind.DNS: "the host {host} has no address: correct `base_url`",
    FailureKind.PROXY: "the proxy refuses the call or cannot be reached: check `proxy`",
    FailureKind.UNREACHABLE: "no connection to {host}: check that it runs, the port and the firewall",
    FailureKind.RATE_LIMIT: "the key works, and its rate limit is reached: try again later",
    FailureKind.SLOW: "no response in time: check `base_url`, or raise `timeout`",
    FailureKind.SERVER_ERROR: "the provider fails: try again later",
    FailureKind.BROKEN: "the connection ended before the response: check the scheme and the port of `base_url`",
    FailureKind.REQUEST: "the provider refuses the call: check `protocols`",
}
"""Kind of failure -> advice to the operator, with placeholders in braces for facts of the failure."""
NO_CREDENTIALS = "the channel has no credentials: check `auth`"
"""Advice on a failure before the provider was called."""


def advice(facts: ProviderFailure) -> str:
    """Return the remedy of a provider's failure and the provider's message in one line, without the API key."""
    text, status = remedy(facts), f"status {facts.status}: " if facts.status else ""
    return f"{text} ({status}{facts.message})" if status or facts.message else text


def remedy_of_kind(kind: str, facts: ProviderFailure) -> str:
    """Return the remedy of a recorded failure by the name of its kind; "" for an unknown one, for example of a later
    version. `facts`: the recorded ones, of any kind.
    """
    known = next((each for each in FailureKind if each.value == kind), None)
    return "" if known is None else remedy(facts._replace(kind=known))


def remedy(facts: ProviderFailure) -> str:
    """Return the cause of a provider's failure and its remedy, without the provider's message and the API key."""
    preset = next(
        (each.base_url for each in PROVIDER_PRESETS.values() if urlsplit(each.base_url).netloc == facts.host), ""
    )
    right = facts.right_base_url or preset
    right = f"set `base_url: {right}`" if right else "correct `base_url`"
    is_own = facts.kind is FailureKind.WRONG_KEY and not facts.status and facts.message.startswith("auth")
    return (NO_CREDENTIALS if is_own else FAILURE_REMEDIES[facts.kind]).format(
        key=f" ...{facts.key_tail}" if facts.key_tail else "",
        model=facts.model,
        path=facts.path or "the path",
        host=facts.host or "the provider",
        right=right,
        type=f" ({facts.content_type})" if facts.content_type else "",
    )
