"""HTTP proxy of an operator's network, run as a process of its own: Envoy, with tunnels by CONNECT."""

import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.proxies import START_SECONDS, free_ports, program, proxy_process

TYPES = "type.googleapis.com/envoy.extensions"
USER, PASSWORD = "umg", "p@ss-word-of-the-proxy"
REFUSED = 401
"""Status with which Envoy refuses a tunnel without credentials."""


@dataclass(frozen=True)
class ConnectProxy:
    url: str
    log: Path

    def with_credentials(self) -> str:
        """Return the URL of the proxy with the credentials that it requires."""
        return self.url.replace("://", f"://{USER}:{PASSWORD.replace('@', '%40')}@")

    def calls(self) -> list[str]:
        """Return the finished requests to the proxy, each as `METHOD HOST:PORT STATUS`, sorted."""
        return sorted(self.log.read_text().splitlines()) if self.log.exists() else []


@asynccontextmanager
async def connect_proxy(folder: Path, *, needs_credentials: bool = False) -> AsyncGenerator[ConnectProxy, None]:
    """Run a proxy on this machine, which resolves the names of the requests itself."""
    port, log, config = free_ports(1)[0].http, folder / "proxy.log", folder / "proxy.json"
    config.write_text(json.dumps(_config(port, folder, needs_credentials=needs_credentials)))
    found = program("envoy")
    assert found is not None
    command = (found, "-c", str(config), "--concurrency", "1", "--use-dynamic-base-id", "-l", "error")
    async with proxy_process((*command, "--file-flush-interval-msec", "1"), port, seconds=START_SECONDS, output=log):
        yield ConnectProxy(f"http://127.0.0.1:{port}", log)


def _config(port: int, folder: Path, *, needs_credentials: bool) -> dict[str, object]:
    dns = {
        "name": "dns",
        "dns_lookup_family": "V4_ONLY",
        "typed_dns_resolver_config": {
            "name": "envoy.network.dns_resolver.getaddrinfo",
            "typed_config": _typed("network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig"),
        },
    }
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    users = {"inline_string": f"{USER}:{{SHA}}{digest}"}
    credentials = _filter("basic_auth.v3.BasicAuth", users=users, authentication_header="proxy-authorization")
    tunnels = [{"upgrade_type": "CONNECT", "connect_config": {}}]
    line = {"text_format_source": {"inline_string": "%REQ(:METHOD)% %REQ(:AUTHORITY)% %RESPONSE_CODE%\n"}}
    manager = _typed(
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="proxy",
        http_protocol_options={"accept_http_10": True},  # in which the standard library of Python opens tunnels
        access_log=[
            {"name": "log", "typed_config": _typed("access_loggers.stream.v3.StdoutAccessLog", log_format=line)}
        ],
        http_filters=[
            *([credentials] if needs_credentials else []),
            _filter("dynamic_forward_proxy.v3.FilterConfig", dns_cache_config=dns),
            _filter("router.v3.Router"),
        ],
        upgrade_configs=[{"upgrade_type": "CONNECT"}],
        route_config={
            "virtual_hosts": [
                {
                    "name": "all",
                    "domains": ["*"],
                    "routes": [
                        {"match": {"connect_matcher": {}}, "route": {"cluster": "any", "upgrade_configs": tunnels}},
                        {"match": {"prefix": "/"}, "route": {"cluster": "any"}},
                    ],
                }
            ]
        },
    )
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    cluster = {
        "name": "any",
        "lb_policy": "CLUSTER_PROVIDED",
        "cluster_type": {
            "name": "any",
            "typed_config": _typed("clusters.dynamic_forward_proxy.v3.ClusterConfig", dns_cache_config=dns),
        },
    }
    return {
        "admin": {"address": {"pipe": {"path": f"{folder}/proxy.sock"}}},
        "static_resources": {
            "listeners": [{"name": "proxy", "address": address, "filter_chains": [chain]}],
            "clusters": [cluster],
        },
    }


def _typed(kind: str, **values: object) -> dict[str, object]:
    return {"@type": f"{TYPES}.{kind}", **values}


def _filter(kind: str, **values: object) -> dict[str, object]:
    return {"name": kind, "typed_config": _typed(f"filters.http.{kind}", **values)}
