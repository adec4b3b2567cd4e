"""Cases of bodies that a face refuses, and their check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Rejection:
    id: str
    field: str
    body: Mapping[str, object] = field(default_factory=dict)
    """Members in place of those of an accepted body; UNSET for one that is missing."""
    reason: "pb.ErrorReason.ValueType" = pb.ERROR_REASON_INVALID_FIELD
    message: str = ""


def check_rejection(decode: Callable[..., object], accepted: Mapping[str, object], case: Rejection) -> None:
    """Check that the accepted body is refused with the members of the case, by the path of its field."""
    body = {name: value for name, value in {**accepted, **case.body}.items() if value is not msgspec.UNSET}
    with pytest.raises(UmgError) as caught:
        decode(msgspec.json.encode(body), {})
    error = caught.value
    assert (error.reason, error.metadata) == (case.reason, {"field": case.field})
    assert error.message.startswith(f"`{case.field}`")
    assert case.message in error.message
    assert error.message.isprintable()
    assert len(error.message) < 300
