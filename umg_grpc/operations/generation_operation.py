"""Generation of text, and the count of the tokens of its input."""

from umg_grpc.knowledge.price_calculation import INPUT_TOKEN, OUTPUT_TOKEN, REQUEST_UNIT
from umg_grpc.operations.operation_row import AttemptTelemetry, Operation
from umg_grpc.v1 import pb
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS

LISTED_AS = (
    *("chat", "completion_chat", "language", "llm", "text", "vlm", "generateContent", "supports_chat"),
    *("TextGeneration", "VisualQuestionAnswering"),
)

GENERATE_OPERATION = Operation(
    value=pb.MODEL_OPERATION_GENERATE,
    scope="generate",
    verb="generate text",
    results="texts",
    service="GenerationService",
    methods=("Generate", "StreamGenerate"),
    protocols=TEXT_PROTOCOLS,
    listed_as=LISTED_AS,
    id_part="",
    model_field="",
    units=frozenset({REQUEST_UNIT, INPUT_TOKEN, OUTPUT_TOKEN}),
    telemetry=AttemptTelemetry("chat", "gen_ai.client.inference.duration"),
    request=pb.GenerateRequest,
    response=pb.GenerateResponse,
    probe=pb.GenerateRequest(  # with the smallest output limit that all providers accept
        messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])], max_output_tokens=16
    ),
)
TOKEN_COUNTING = Operation(
    value=pb.MODEL_OPERATION_COUNT_TOKENS,
    scope="generate",
    verb="",
    results="texts",
    service="GenerationService",
    methods=(),  # the gateway counts by itself
    protocols=TEXT_PROTOCOLS,
    listed_as=LISTED_AS,
    id_part="",
    model_field="",
    units=frozenset(),
    telemetry=None,
    request=pb.CountTokensRequest,
    response=pb.CountTokensResponse,
    probe=None,
)
