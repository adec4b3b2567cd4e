"""Secrets of a channel that a provider may repeat: keys, tokens, header and query values, the proxy's password."""

from collections.abc import Iterator, Sequence

from yarl import URL

from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint
from umg_grpc.wire.errors.secret_masking import SecretMask

MAX_TOKENS = 8
"""Number of the latest tokens of each key that are masked: calls with a replaced one may still fail."""
PUBLIC_PARAMETERS = frozenset({"api-version"})
"""Parameters of the query whose values are no secrets."""
PUBLIC_HEADERS = frozenset(
    {
        *("accept", "accept-language", "anthropic-beta", "anthropic-version", "content-type", "http-referer"),
        *("openai-beta", "referer", "user-agent", "x-title"),
    }
)
"""Headers whose values are no secrets."""
AUTH_SCHEMES = frozenset({"apikey", "basic", "bearer", "digest", "token"})
"""Names of authentication schemes, with which the values of headers begin."""


class ChannelSecrets:
    """Secrets of a channel's endpoints and proxy. The mask is made when needed, and again after a new token."""

    def __init__(self, endpoints: Sequence[ProviderEndpoint], proxy: str | None = None) -> None:
        self._endpoints = endpoints
        self._proxy = proxy
        self._signers = [endpoint.signer for endpoint in endpoints if endpoint.signer is not None]
        self._tokens = dict[str, None]()
        self._mask: SecretMask | None = None

    @property
    def mask(self) -> SecretMask:
        new = [signer.token for signer in self._signers if signer.token not in self._tokens]
        if new:
            self._tokens |= dict.fromkeys(new)
            for oldest in list(self._tokens)[: -MAX_TOKENS * len(self._signers)]:
                del self._tokens[oldest]
        if new or self._mask is None:
            self._mask = SecretMask([*self._configured(), *self._tokens])
        return self._mask

    def _configured(self) -> Iterator[str]:
        for endpoint in self._endpoints:
            yield endpoint.secret
            yield from endpoint.secret.split(":")  # a key may be a pair
            for name, value in endpoint.headers.items():
                if name.lower() not in PUBLIC_HEADERS:
                    yield value
                    yield from (word for word in value.split() if word.lower() not in AUTH_SCHEMES)
            yield from (value for name, value in endpoint.query.items() if name not in PUBLIC_PARAMETERS)
        if self._proxy is not None and (password := URL(self._proxy).password):
            yield password
            yield f"{URL(self._proxy).user or ''}:{password}"
