"""Proxies of commands that call a URL, by the rules of the gateway."""

import os
from urllib.parse import urlsplit
from urllib.request import ProxyHandler

from umg_grpc.base.proxy_rules import environment_proxies


def proxy_handler(url: str) -> ProxyHandler:
    """Return the handler with the environment's proxy for a URL. Raise ProxyError for a variable that has no URL."""
    proxy = environment_proxies(os.environ).of_url(url)
    return ProxyHandler({} if proxy is None else {urlsplit(url).scheme: proxy.url})
