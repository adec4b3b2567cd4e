"""Moderation: classification of contents by categories of harm."""

import re

from umg_grpc.knowledge.price_calculation import INPUT_TOKEN, REQUEST_UNIT
from umg_grpc.operations.operation_row import AttemptTelemetry, UnaryOperation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_model_lists import OPENAI_LIST
from umg_grpc.wire.provider_protocols import ProviderProtocol

HARM_CATEGORIES = (
    *("harassment", "harassment/threatening", "hate", "hate/threatening", "illicit", "illicit/violent", "self-harm"),
    *("self-harm/intent", "self-harm/instructions", "sexual", "sexual/minors", "violence", "violence/graphic"),
)
"""Categories of the simulated provider: those of openai 3.57.0, `types/moderation.py`."""
FLAG_MARK = re.compile(r"\[\[flag:([a-z/-]+)\]\]")
"""Pattern of a mark in a text that makes the simulated provider flag a category."""


def _example(request: pb.ModerateRequest) -> pb.ModerateResponse:
    response = pb.ModerateResponse(model=request.model)
    for given in request.inputs:
        marked = {name for part in given.parts for name in FLAG_MARK.findall(part.text)}
        kinds = sorted({"image" if part.HasField("image_url") else "text" for part in given.parts}, reverse=True)
        result = response.results.add(flagged=not marked.isdisjoint(HARM_CATEGORIES))
        for name in HARM_CATEGORIES:
            is_marked = name in marked
            result.categories.add(name=name, flagged=is_marked, score=0.99 if is_marked else 0.01, input_types=kinds)
    return response


MODERATE_OPERATION = UnaryOperation(
    value=pb.MODEL_OPERATION_MODERATE,
    scope="moderate",
    verb="moderate contents",
    results="moderations",
    service="ModerationService",
    methods=("Moderate",),
    protocols={"moderations": ProviderProtocol(call_path=re.compile(r"/moderations$"), model_list=OPENAI_LIST)},
    listed_as=("moderation", "moderations"),
    id_part="moderation",
    model_field="",
    units=frozenset({REQUEST_UNIT, INPUT_TOKEN}),
    telemetry=AttemptTelemetry("moderation", "umg.client.moderation.duration"),  # the conventions have none
    request=pb.ModerateRequest,
    response=pb.ModerateResponse,
    probe=pb.ModerateRequest(inputs=[pb.ModerationInput(parts=[pb.ModerationPart(text="Hi")])]),
    most_quantities=lambda _, size: {REQUEST_UNIT: 1, INPUT_TOKEN: size},
    usage=lambda response: pb.Usage(input_tokens=response.usage.input_tokens),
    counted_texts=lambda request: (part.text for given in request.inputs for part in given.parts),
    example=_example,
    simulated={"omni-moderation-latest": "{request: 0}"},
    paths={"/v1/moderations": "moderations"},
    tag="Moderation",
    summary="Judge contents by categories of harm",
    body_types="umg_grpc.wire.moderations.openapi_bodies:BODY_TYPES",
    codecs="umg_grpc.wire.moderations:MODERATION_FORMATS",
)
