"""Events of our streams as the openai package reads them."""

from hypothesis import HealthCheck, given, settings
from openai import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.unit.wire.responses import strategies as some
from tests.unit.wire.responses.streams import encoded, payloads_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events

EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(some.responses())
def test_every_event_is_one_of_the_official_types_and_the_helper_takes_them_all(response: pb.GenerateResponse) -> None:
    state = ResponseStreamState(input_tools=omit, text_format=omit)
    for payload in payloads_of(encoded([response_to_events(response)], some.ANSWERED)):
        state.handle_event(EVENT.validate_python(payload, strict=True))
    whole = response.candidates[0].finish_reason not in (pb.FINISH_REASON_LENGTH, pb.FINISH_REASON_CONTENT_FILTER)
    assert (state._completed_response is not None) == whole
