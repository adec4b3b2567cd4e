"""Order of the checks of a submission: a request with several faults is refused for the first one, at no cost."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from tests.support import fake_video_upstream
from tests.support.fake_video_upstream import FakeVideos
from tests.support.gateways import running
from tests.support.video_calls import Stub, stub_of
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb

CONFIG = fake_video_upstream.config("priced", "unpriced") + "models: {priced: {price: {video_second: {any: '0.1'}}}}\n"
UNKNOWN = "unknown-model"
BROKEN_URL, REFUSED_URL = "data:video/mp4;base64,%%", "http://127.0.0.1/notify"
MALFORMED = (("x-umg-strict", "perhaps"),)


def request(
    model: str = "priced", *, seconds: int = 5, media: str = "", callback: str | None = None, prompt: str = "a cat"
) -> pb.CreateVideoTaskRequest:
    parameters = pb.VideoParameters(prompt=prompt, duration_seconds=seconds)
    if media:
        parameters.media.add(role=pb.VIDEO_MEDIA_ROLE_FIRST_FRAME, kind=pb.VIDEO_MEDIA_KIND_IMAGE, url=media)
    return pb.CreateVideoTaskRequest(model=model, parameters=parameters, callback_url=callback, idempotency_key="one")


@dataclass(frozen=True)
class Caller:
    """Caller whose key may make one call a minute, with a budget of one micro-credit."""

    stub: Stub
    fake: FakeVideos
    keys: ApiKeys

    async def failure(self, case: "Faults") -> tuple[str, str]:
        """Return (reason, field) of the error of a call with a new key. `case.spent`: after another call."""
        _, secret = await self.keys.create(
            "limited", requests_per_minute=1, budget_micro_credits=1 if case.has_budget else None
        )
        metadata = (("authorization", f"Bearer {secret}"), *(MALFORMED if case.malformed else ()))
        if case.is_spent:
            await self.refused(request("priced", prompt="a dog"), metadata[:1])
        return await self.refused(case.request, metadata)

    async def refused(self, sent: pb.CreateVideoTaskRequest, metadata: tuple[tuple[str, str], ...]) -> tuple[str, str]:
        try:
            await self.stub.CreateVideoTask(sent, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            found = from_rpc(error)
            return found.name, found.metadata.get("field", "")
        return "OK", ""


@pytest_asyncio.fixture
async def caller(tmp_path: Path) -> AsyncGenerator[Caller, None]:
    async with running(CONFIG, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
        fake = FakeVideos()
        gateway.service._channels.videos["videos"] = fake
        yield Caller(stub_of(channel), fake, ApiKeys(gateway.service.store))


@dataclass(frozen=True)
class Faults:
    """Request with several faults. `is_spent`: the limit of its key is spent by a call with the same idempotency key."""

    id: str
    request: pb.CreateVideoTaskRequest
    expected: tuple[str, str]
    has_budget: bool = True
    is_spent: bool = False
    malformed: bool = True


FAULTS = [
    Faults(
        "a rule of the schema, before an invalid data URL",
        request(UNKNOWN, seconds=100, media=BROKEN_URL, callback=REFUSED_URL),
        ("INVALID_FIELD", "parameters.duration_seconds"),
    ),
    Faults(
        "an invalid data URL, before a refused address",
        request(UNKNOWN, media=BROKEN_URL, callback=REFUSED_URL),
        ("INVALID_FIELD", "parameters.media[0].url"),
    ),
    Faults(
        "a refused address, before an unknown model",
        request(UNKNOWN, callback=REFUSED_URL),
        ("INVALID_FIELD", "callback_url"),
    ),
    Faults(
        "an unknown model, before the key of another task",
        request(UNKNOWN),
        ("MODEL_NOT_FOUND", ""),
        has_budget=False,
        is_spent=True,
    ),
    Faults(
        "the key of another task, before a spent limit",
        request(),
        ("ALREADY_EXISTS", ""),
        has_budget=False,
        is_spent=True,
    ),
    Faults("a model without a price, before a spent limit", request("unpriced"), ("MODEL_UNPRICED", ""), is_spent=True),
    Faults("a spent limit, before an exhausted budget", request(), ("RATE_LIMITED", ""), is_spent=True),
    Faults("an exhausted budget, before a malformed header", request(), ("QUOTA_EXHAUSTED", "")),
    Faults("a malformed header, before the provider", request(), ("INVALID_FIELD", "x-umg-strict"), has_budget=False),
]


@pytest.mark.parametrize("case", FAULTS, ids=lambda case: case.id)
async def test_a_submission_is_refused_for_its_first_fault(case: Faults, caller: Caller) -> None:
    assert await caller.failure(case) == case.expected
    assert len(caller.fake.submitted) == (1 if case.is_spent and not case.has_budget else 0)
