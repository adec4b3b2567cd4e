"""Proxies of channels: the proxy that a channel configures, or else the proxies of the environment."""

from collections.abc import Sequence
from itertools import chain

from umg_grpc.base.proxy_rules import NONE_VARIABLE, Proxy, ProxyError, ProxyRules, environment_proxies, is_local
from umg_grpc.config.config_values import DIRECT_ROUTE, Channel
from umg_grpc.config.yaml_document import YamlDocument


def environment_rules(document: YamlDocument, channels: Sequence[Channel]) -> ProxyRules:
    """Return the environment's proxies. Report a variable without a valid proxy URL, if a channel would use it."""
    try:
        return environment_proxies(document.environment)
    except ProxyError as error:
        urls = chain.from_iterable(channel.addresses for channel in channels if channel.proxy is None)
        if not all(map(is_local, urls)):
            document.problem((), str(error))
        places = {name: value for name, value in document.environment.items() if name.upper() == NONE_VARIABLE}
        return environment_proxies(places)


def channel_proxy(channel: Channel, rules: ProxyRules, url: str) -> Proxy | None:
    """Return the proxy by which a channel calls a URL of its provider; None for a direct call. `rules`: proxies that
    the environment names, for a channel without a setting of its own.
    """
    if channel.proxy is None:
        return rules.of_url(url)
    return None if channel.proxy == DIRECT_ROUTE else Proxy(channel.proxy, "proxy of the channel")


def proxy_url(channel: Channel, rules: ProxyRules, url: str) -> str | None:
    """Return the URL of the proxy by which a channel calls a URL of its provider; None for a direct call."""
    proxy = channel_proxy(channel, rules, url)
    return None if proxy is None else proxy.url
