"""Commands that call a gateway or a URL, in a network with an HTTP proxy."""

import json
import socket
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from umg_conformance.grpc_client import channel_to

from tests.support.gateways import KEY, SANDBOX, running
from tests.support.processes import run
from tests.support.proxies import NOWHERE
from tests.support.serving import serving
from umg_grpc.base.grpc_proxies import WITHOUT_PROXY, proxy_options
from umg_grpc.cli.gateway_connection import GrpcTarget
from umg_grpc.v1 import pb, rpc

PRICES = json.dumps({"gpt-5": {"litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 1e-06}})
KEYS = {"keys": []}


@dataclass
class Place:
    """Server of a file of prices and of an empty list of keys; as a proxy it gets whole URLs."""

    targets: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.targets.append(request.raw_path)
        text = json.dumps(KEYS) if "/admin/" in request.path else PRICES
        return web.Response(text=text, content_type="application/json")


def app(place: Place) -> web.Application:
    made = web.Application()
    made.router.add_route("*", "/{path:.*}", place.handle)
    return made


async def test_a_gateway_on_this_machine_is_called_over_grpc_without_a_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in NOWHERE.items():
        monkeypatch.setenv(name, value)
    async with running(SANDBOX, tmp_path) as made:
        target = GrpcTarget(made.grpc, KEY, tls=False, authorities=None)
        async with target.opened() as channel:
            async with channel_to(made.grpc, tls=False) as of_kit:
                stub = rpc.ModelServiceStub(of_kit)
                listed = await stub.ListModels(pb.ListModelsRequest(), metadata=target.credentials)
            models = await rpc.ModelServiceStub(channel).ListModels(pb.ListModelsRequest(), metadata=target.credentials)
    assert models == listed
    assert models.models


TARGETS = [
    ("127.0.0.1:50051", True),
    ("localhost:50051", True),
    ("[::1]:50051", True),
    ("http://127.0.0.1:4317", True),
    ("localhost", True),
    ("gateway.example:50051", False),
    ("https://collector.example:4317", False),
]


@pytest.mark.parametrize(("target", "is_direct"), TARGETS)
def test_a_grpc_channel_to_this_machine_is_direct(target: str, is_direct: bool) -> None:
    assert (proxy_options(target) == (WITHOUT_PROXY,)) is is_direct


async def test_urls_of_other_machines_are_read_through_the_proxy(tmp_path: Path) -> None:
    near, proxy = Place(), Place()
    async with serving(app(near)) as own, serving(app(proxy)) as through:
        environment = {"http_proxy": through, "UMG_ADMIN_KEY": KEY}
        data, far = ("--data", str(tmp_path)), own.replace("127.0.0.1", socket.gethostname())
        for url in (own, far):
            code, _, err = await run("prices", "update", f"{url}/prices.json", *data, environment=environment)
            assert (code, err) == (0, "")
            code, _, err = await run("keys", "list", "--gateway", url, environment=environment)
            assert code == 0, err
        code, _, err = await run(
            *("prices", "update", f"{far}/prices.json", *data),
            environment={**environment, "NO_PROXY": urlsplit(far).netloc},
        )
        assert (code, err) == (0, "")
    assert proxy.targets == [f"{far}/prices.json", f"{far}/umg.v1.AdminService/ListKeys"]
    assert near.targets.count("/prices.json") == 2


async def test_an_unusable_proxy_is_named_by_the_commands(tmp_path: Path) -> None:
    environment = {"HTTPS_PROXY": "socks5://me:secret-word@proxy.example:1080", "UMG_ADMIN_KEY": KEY}
    for command in (
        ("prices", "update", "https://files.example/prices.json", "--data", str(tmp_path)),
        ("keys", "list", "--gateway", "https://gateway.example"),
    ):
        code, _, err = await run(*command, environment=environment)
        assert code == 1
        assert "expected the environment variable HTTPS_PROXY to be the URL of an HTTP proxy" in err
        assert "secret-word" not in err
