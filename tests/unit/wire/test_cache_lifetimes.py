"""Lifetime of cache entries, read from the body of a request."""

from dataclasses import dataclass

import pytest

from umg_grpc.wire.core.prompt_cache_lifetimes import selects_long_lifetime


@dataclass(frozen=True)
class Body:
    """Body of a request, and whether it selects the longer lifetime."""

    id: str
    body: bytes
    is_long: bool
    protocol: str = "chat"


BODIES = [
    Body("no control", b'{"input":"hi"}', is_long=False),
    Body("half an hour", b'{"prompt_cache_options":{"ttl":"30m"}}', is_long=False),
    Body("twelve hours", b'{"prompt_cache_options":{"mode":"explicit","ttl":"12h"}}', is_long=True),
    Body("white space", b'{"prompt_cache_options" : {\n "ttl": "12h"\n}}', is_long=True),
    Body("a breakpoint", b'{"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}', is_long=True),
    Body("another member of this value", b'{"prompt_cache_options":{"ttl":"30m"},"ttl":"12h"}', is_long=False),
    Body("an hour at a relay", b'{"cache_control": {"type": "ephemeral", "ttl": "1h"}}', is_long=True),
    Body("five minutes at a relay", b'{"cache_control":{"type":"ephemeral"},"ttl":"1h"}', is_long=False),
    Body("an hour of messages", b'{"cache_control":{"ttl":"1h"}}', is_long=False, protocol="messages"),
    Body("a text", rb'{"input":"{\"prompt_cache_options\":{\"ttl\":\"12h\"}}"}', is_long=False),
]


@pytest.mark.parametrize("case", BODIES, ids=lambda case: case.id)
def test_the_longer_lifetime_is_selected_by_the_controls_of_the_cache_alone(case: Body) -> None:
    assert selects_long_lifetime(case.protocol, case.body) is case.is_long
