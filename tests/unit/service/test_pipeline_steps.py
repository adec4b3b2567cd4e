"""Steps of the pipelines: their order is that of the list, and each has the steps that it needs before it."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from tests.support.gateways import KEY, running
from tests.support.gateways import channel as channel_of
from tests.support.serving import serving
from umg_grpc.service.operations.generate.text_pipeline import GenerationPipeline, TextStep
from umg_grpc.service.operations.generate.text_request_encoder import GenerationAttempt, GenerationCall
from umg_grpc.service.pipeline.step_order import (
    ATTEMPTS,
    GUARD_RESPONSE,
    PIPELINE_STEPS,
    PRICE,
    RESOLVE,
    RULES,
    VALIDATE,
    Step,
    in_order,
)
from umg_grpc.service.servicers.generation import GenerationServicer
from umg_grpc.v1 import pb, rpc

SIMULATED = "channels:\n  - {name: simulated, protocols: [sandbox], models: [m]}\n"


def test_each_step_is_behind_the_steps_that_it_needs() -> None:
    for position, step in enumerate(PIPELINE_STEPS):
        assert set(step.needs) <= set(PIPELINE_STEPS[:position]), step.name


def test_no_two_steps_have_one_name() -> None:
    assert len({step.name for step in PIPELINE_STEPS}) == len(PIPELINE_STEPS)


def test_the_order_is_that_of_the_list_however_the_steps_are_given() -> None:
    assert in_order([PRICE, VALIDATE, RULES, RESOLVE]) == (VALIDATE, RESOLVE, PRICE, RULES)


@dataclass(frozen=True)
class Refused:
    id: str
    taken: Collection[Step]
    problem: str


REFUSED = [
    Refused("attempts without a plan", [VALIDATE, RESOLVE, ATTEMPTS], "the step `attempts` needs the step `plan`"),
    Refused("a model of an unchecked request", [RESOLVE], "the step `resolve model` needs the step `validate`"),
    Refused("an unknown step", [Step("weather")], "the step `weather` is not in the list of steps"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_pipeline_without_a_needed_step_is_not_built(case: Refused) -> None:
    with pytest.raises(ValueError, match=case.problem):
        in_order(case.taken)


class GuardedPipeline(GenerationPipeline):
    """Pipeline of text with a guard of the response, which waits as a service of guards would."""

    def _response_steps(self) -> Mapping[Step, TextStep]:
        return {**super()._response_steps(), GUARD_RESPONSE: self._guard_response}

    async def _guard_response(
        self, admitted: GenerationCall, attempt: GenerationAttempt, response: pb.GenerateResponse
    ) -> None:
        await asyncio.sleep(0)
        assert response.model == admitted.request.model  # completed before
        del response.candidates[0].message.parts[:]
        response.candidates[0].message.parts.add(text=pb.TextPart(text="[guarded]"))


def guarded(servicer: GenerationServicer) -> GuardedPipeline:
    """Return a pipeline with the parts of a servicer's own."""
    own = servicer._pipeline
    return GuardedPipeline(own._context, servicer._memory, own._stored_prompts)


async def test_a_response_without_usage_is_charged_for_the_output_that_its_guard_saw(tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "word " * 100}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    body["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]

    async def respond(request: web.Request) -> web.Response:
        return web.json_response(body)

    app = web.Application()
    app.router.add_post("/{path:.*}", respond)
    async with serving(app) as url, running("channels:\n" + channel_of("main", "chat", url, "m"), tmp_path) as gateway:
        servicer = gateway.service._operations._generation
        servicer._pipeline = guarded(servicer)
        prompt = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="hello"))])
        stub = rpc.GenerationServiceStub(gateway.service.channel())
        request = pb.GenerateRequest(model="m", messages=[prompt])
        answered = await stub.Generate(request, metadata=[("authorization", f"Bearer {KEY}")])
        counted = gateway.service.metrics.exposition().decode()
    assert answered.candidates[0].message.parts[0].text.text == "[guarded]"
    assert answered.usage.output_tokens > 90
    assert f'direction="output",model="m"}} {answered.usage.output_tokens}.0' in counted
