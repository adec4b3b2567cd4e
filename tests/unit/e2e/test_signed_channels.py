"""Channels of the config whose calls are signed: the factory gives each of its keys the right credentials."""

import json
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class KlingKey:
    id: str
    key: str
    is_api_key: bool


@pytest.mark.parametrize(
    "case",
    [
        KlingKey(id="an API key", key="static-key", is_api_key=True),
        KlingKey(id="an access key", key=f"ak-1:{SECRET}", is_api_key=False),
    ],
    ids=lambda case: case.id,
)
async def test_an_api_key_is_accepted_by_both_apis_of_kling_and_an_access_key_by_the_old(
    case: KlingKey, tmp_path: Path
) -> None:
    async with serve_provider(FamilyEProvider(keys=["static-key"], pairs={"ak-1": SECRET})) as kling:
        config = f"channels: [{{provider: kling, base_url: {kling.url}, api_key: '{case.key}'}}]"
        async with running(parse(config, str(tmp_path / "umg.yaml"), {}), tmp_path / "data") as made:
            videos = made.service._channels.videos["kling"]
            if case.is_api_key:
                await videos.submit(submission("kling-3.0"), 10)
            else:
                with pytest.raises(UmgError, match="accepts only an API key for this model") as caught:
                    await videos.submit(submission("kling-3.0"), 10)
                assert caught.value.name == "UNTRANSLATABLE"
            other = replace(submission("kling-v2-6"), task_id="task_2")
            await videos.submit(other, 10)  # the key is not suspended
    assert [received.path for received in kling.received] == [
        *(["/text-to-video/kling-3.0"] if case.is_api_key else []),
        "/v1/videos/text2video",
    ]


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
