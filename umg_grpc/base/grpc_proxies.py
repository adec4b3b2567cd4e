"""Options of gRPC channels without a proxy: by itself, gRPC uses `grpc_proxy` and others even for this machine."""

from urllib.parse import urlsplit

from umg_grpc.base.proxy_rules import is_local

WITHOUT_PROXY = ("grpc.enable_http_proxy", 0)


def proxy_options(target: str) -> tuple[tuple[str, int], ...]:
    """Return the options of a channel to `HOST:PORT` or a URL: no proxy to this machine, else gRPC's own rules."""
    url = target if urlsplit(target).netloc else f"http://{target}"
    return (WITHOUT_PROXY,) if is_local(url) else ()
