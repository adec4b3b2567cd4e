"""Calls of models that their vendors have shut down are refused in the caller's own format, and nothing is sent."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession

from tests.support.gateways import running

CONFIG = """
channels:
  - {name: films, protocols: [vidA], base_url: 'https://api.openai.com/v1', api_key: k, models: [sora-2]}
  - {name: pictures, protocols: [images], base_url: 'https://api.openai.com/v1', api_key: k, models: [dall-e-3]}
"""
SORA = "The model `sora-2` was shut down by its vendor on 2026-09-24."
DALL_E = "The model `dall-e-3` was shut down by its vendor on 2026-05-12; use gpt-image-2 or later."


@dataclass(frozen=True)
class Call:
    id: str
    path: str
    body: dict[str, object]
    place: tuple[str, ...]
    """Path of the message in the error body."""
    message: str = SORA


CALLS = [
    Call("videos", "/v1/videos", {"model": "sora-2", "prompt": "x"}, ("error", "message")),
    Call("unified videos", "/v1/video/generations", {"model": "sora-2", "prompt": "x"}, ("error", "message")),
    Call("images", "/v1/images/generations", {"model": "dall-e-3", "prompt": "x"}, ("error", "message"), DALL_E),
    Call("family E", "/vidE/v1/videos/text2video", {"model": "sora-2", "prompt": "x"}, ("message",)),
    Call(
        "family G",
        "/vidG/v2/video_generation",
        {"model": "sora-2", "content": [{"type": "text", "text": "x"}]},
        ("error", "message"),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
async def test_a_retired_model_is_refused_in_the_callers_format(call: Call, tmp_path: Path) -> None:
    async with (
        running(CONFIG, tmp_path) as made,
        ClientSession() as session,
        session.post(f"{made.url}{call.path}", json=call.body, headers=made.headers) as response,
    ):
        found = await response.json()
        assert response.status == 404, found
        for name in call.place:
            found = found[name]
        assert found == call.message


async def test_the_list_of_models_marks_a_retired_one(tmp_path: Path) -> None:
    headers = {"anthropic-version": "2023-06-01"}
    async with (
        running(CONFIG, tmp_path) as made,
        ClientSession(headers=made.headers | headers) as session,
        session.get(f"{made.url}/v1/models") as response,
    ):
        models = {model["id"]: model for model in (await response.json())["data"]}
    assert (models["sora-2"]["lifecycle"], models["sora-2"]["retires_at"]) == ("retired", "2026-09-24T00:00:00Z")
