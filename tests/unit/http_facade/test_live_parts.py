"""Live parts are drawn once for an audience, and anew when they are old; a failure or a person that leaves ends nothing."""

import asyncio
from dataclasses import dataclass, field

import pytest

from http_facade.console.caller_rights import CallerRights
from http_facade.console.live_parts import MIN_SHARED_SECONDS, LiveParts, SharedLiveParts
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio


@dataclass
class Desk:
    seconds: float = 0.0
    drawn: list[str] = field(default_factory=list)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)

    async def draw(self) -> LiveParts:
        self.drawn.append(f"drawing {len(self.drawn) + 1}")
        await self.may_end.wait()
        return LiveParts(self.drawn[-1], b"")


async def test_all_of_an_audience_see_one_drawing_until_it_is_old() -> None:
    desk = Desk()
    shared = SharedLiveParts(lambda: desk.seconds)
    waiting = [asyncio.create_task(shared.get("all", desk.draw)) for _ in range(5)]
    await asyncio.sleep(0)
    desk.may_end.set()
    assert {each.tag for each in await asyncio.gather(*waiting)} == {"drawing 1"}
    desk.seconds = MIN_SHARED_SECONDS - 0.1
    assert (await shared.get("all", desk.draw)).tag == "drawing 1"
    assert (await shared.get("another", desk.draw)).tag == "drawing 2"
    desk.seconds = MIN_SHARED_SECONDS
    assert (await shared.get("all", desk.draw)).tag == "drawing 3"


@pytest.mark.parametrize(("took", "shared_seconds"), [(0.01, 4), (0.06, 6), (0.9, 15)])
async def test_slow_drawings_are_shared_for_longer(took: float, shared_seconds: float) -> None:
    desk = Desk()
    shared = SharedLiveParts(lambda: desk.seconds)

    async def draw() -> LiveParts:
        desk.seconds += took
        desk.drawn.append(f"drawing {len(desk.drawn) + 1}")
        return LiveParts(desk.drawn[-1], b"")

    await shared.get("all", draw)
    desk.seconds = shared_seconds - 0.01
    assert (await shared.get("all", draw)).tag == "drawing 1"
    desk.seconds = shared_seconds + 0.01
    assert (await shared.get("all", draw)).tag == "drawing 2"


async def test_the_next_one_draws_after_a_failure_and_after_a_person_that_left() -> None:
    desk = Desk()
    shared = SharedLiveParts(lambda: desk.seconds)

    async def fail() -> LiveParts:
        raise ValueError("no database")

    with pytest.raises(ValueError, match="no database"):
        await shared.get("all", fail)
    first, second = (asyncio.create_task(shared.get("all", desk.draw)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    desk.may_end.set()
    assert (await second).tag == "drawing 2"


def _rights(name: str, *permissions: pb.CallerPermission) -> CallerRights:
    return CallerRights(pb.GetCallerResponse(name=name, user_id=f"id of {name}", permissions=permissions))


async def test_only_persons_with_the_same_rights_everywhere_share_their_view() -> None:
    everywhere = [
        pb.CallerPermission(permission="usage_read", extent=pb.PERMISSION_EXTENT_ALL),
        pb.CallerPermission(permission="users_read", extent=pb.PERMISSION_EXTENT_PART),
    ]
    own_sessions = pb.CallerPermission(permission="sessions_read", extent=pb.PERMISSION_EXTENT_OWN)
    ada = _rights("ada", *everywhere)
    assert ada.audience == _rights("bob", *everywhere, own_sessions).audience
    assert ada.audience != _rights("bob", everywhere[0]).audience
    for one in (
        pb.CallerPermission(permission="usage_read", extent=pb.PERMISSION_EXTENT_OWN),
        pb.CallerPermission(permission="usage_read", extent=pb.PERMISSION_EXTENT_ALL, account_ids=["proj_1"]),
        pb.CallerPermission(permission="usage_read", extent=pb.PERMISSION_EXTENT_CALLING_KEY),
    ):
        assert _rights("ada", one).audience != _rights("bob", one).audience
        assert _rights("ada", one).audience == _rights("ada", one).audience
