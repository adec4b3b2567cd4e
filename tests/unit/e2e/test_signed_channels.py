"""Channels of the config whose calls are signed: the factory gives each of its keys the right credentials."""

import json
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.gateways import running
from tests.support.providers.server import ReceivedRequest, serve_provider
from tests.support.providers.video_b import VERTEX, OperationProvider
from tests.support.providers.video_e import FamilyEProvider
from tests.support.providers.video_f import SignedProvider
from tests.support.service_accounts import key_file
from tests.support.videos import submission
from umg_grpc.base.errors import UmgError
from umg_grpc.config import parse

SECRET = "s" * 32


class WithTokens(OperationProvider):
    """Provider of operations that also issues tokens, as the vendor does at another host."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.path == "/token":
            return web.json_response({"access_token": self.keys[0], "expires_in": 3599})
        return await super().answer(request, received)


async def test_each_kind_of_auth_is_accepted_by_its_provider(tmp_path: Path) -> None:
    async with (
        serve_provider(SignedProvider(pairs={"ak-1": "sk:1", "ak-2": "sk-2"})) as visual,
        serve_provider(FamilyEProvider(pairs={"ak-1": SECRET})) as family_e,
        serve_provider(WithTokens(keys=["ya29.token"])) as vertex,
    ):
        (tmp_path / "account.json").write_text(key_file(vertex.url))
        config = f"""
channels:
  - name: visual
    protocols: [vidF]
    base_url: {visual.url}
    api_key: ["ak-1:sk:1", "ak-2:sk-2"]
    auth: {{kind: access_key}}
    models: [vidF_vgfm_t2v_l20]
  - name: family-e
    protocols: [vidE]
    base_url: {family_e.url}
    api_key: ak-1:{SECRET}
    auth: {{kind: jwt}}
    models: [vidE-v2-6]
  - name: vertex
    protocols: [vidB]
    base_url: {vertex.url}{VERTEX}
    auth: {{kind: service_account, file: account.json}}
    models: [vidB-3.1-generate-preview]
"""
        async with running(parse(config, str(tmp_path / "umg.yaml"), {}), tmp_path / "data") as made:
            videos = made.service._channels.videos
            keys = {(await videos["visual"].submit(submission("m"), 10))[0].key_id for _ in range(2)}
            await videos["family-e"].submit(submission("kling-v2-6"), 10)
            await videos["vertex"].submit(submission("veo-3.1", duration_seconds=4), 10)
    assert [len(provider.tasks) for provider in (visual, family_e, vertex)] == [2, 1, 1]
    assert {task.key for task in visual.tasks.values()} == {"ak-1", "ak-2"}
    assert len(keys) == 2
    for provider in (visual, family_e):
        assert not any(secret in str(provider.received) for secret in ("sk:1", "sk-2", SECRET))


async def test_a_file_that_is_no_service_account_stops_the_start_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "account.json").write_text(json.dumps({"client_email": "umg@p.example", "private_key": "secret"}))
    config = (
        "channels: [{name: a, protocols: [vidB], base_url: http://a, models: [m], "
        "auth: {kind: service_account, file: account.json}}]"
    )
    with pytest.raises(
        (OSError, UmgError), match=r"channel a: auth\.file .*account\.json: expected the JSON key"
    ) as caught:
        async with running(parse(config, str(tmp_path / "umg.yaml"), {}), tmp_path / "data"):
            pass
    assert "secret" not in str(caught.value)
