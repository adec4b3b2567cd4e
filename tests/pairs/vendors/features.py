"""Features of a request: the requests of callers of each face, and their forms in each protocol.

A way is a fragment of a provider's body. A feature is kept where the body contains one of its ways, and a vendor has it
where the judge accepts a way. A feature that the vendor has must be kept, any other must be named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.pairs.table import TEXT_FACES
from tests.pairs.vendors.refusal import Json
from tests.pairs.vendors.schemas import NESTED, ONE_OF, OPEN_API, PYDANTIC, SIMPLE, WITH_BOUNDS

TEXT = "Say ok."
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"
PDF = (
    "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbMyAwIFJd"
    "L0NvdW50IDE+PmVuZG9iagozIDAgb2JqPDwvVHlwZS9QYWdlL1BhcmVudCAyIDAgUi9NZWRpYUJveFswIDAgOTkgOTldPj5lbmRvYmoKdHJhaWxl"
    "cjw8L1Jvb3QgMSAwIFI+PgolJUVPRg=="
)
CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Name of the city"}},
    "required": ["city"],
}
HARD: Json = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "additionalProperties": False,
    "required": ["city"],
    "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}},
    "properties": {
        "city": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "unit": {"$ref": "#/$defs/Unit"},
        "days": {"type": ["integer", "null"], "exclusiveMinimum": 0, "default": None},
        "kind": {"const": "now"},
        "at": {"oneOf": [{"type": "string", "format": "date-time"}, {"type": "number"}]},
    },
}
NO_ARGUMENTS: Json = {"type": "object", "properties": {}}
ANSWER = "21 degrees"
BLUE = "Answer only BLUE."
BEGUN = "The answer is ("
LONG_USER = "u" * 130
LONG = 200_000
BUDGET = 2048
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
FACES = tuple(TEXT_FACES)


class Anything:
    """Value of a way that any value of the body fits."""

    def __repr__(self) -> str:
        return "..."


ANY: Final = Anything()


@dataclass(frozen=True)
class Way:
    """Fragment of a body that expresses a feature. `vendors`: those at which it has the effect; None for all of the
    protocol. `text`: string that the body has beside it. `last`: whether the fragment is of the last turn.
    """

    fragment: Mapping[str, Any] = field(default_factory=dict)
    vendors: frozenset[str] | None = None
    not_at: frozenset[str] = frozenset()
    """Vendors that take the fragment without effect."""
    text: str = ""
    last: bool = False
    demanded: bool = True
    """Whether a vendor that takes it has the feature; otherwise it only counts where it is sent."""


@dataclass(frozen=True)
class Feature:
    """Feature of a request."""

    id: str
    requests: Mapping[str, Json]
    """Face -> members of its body."""
    ways: Mapping[str, Sequence[Way]]
    """Protocol -> ways to express it."""
    names: tuple[str, ...] = ()
    """Parts of the names by which a report may name it."""
    meaning: bool = False
    """Whether the request means something else without it, so that it may be refused."""
    harmless: bool = False
    """Whether nothing is lost without it."""
    parts: Mapping[str, tuple["Feature", ...]] = field(default_factory=dict)
    """Face -> features that its request has besides, each of which must be kept or named, too."""


def text_ways(text: str) -> dict[str, list[Way]]:
    """Return the ways of a text that each protocol's body contains."""
    return {protocol: [Way(text=text)] for protocol in FACES}


def turns(*spoken: tuple[str, str]) -> dict[str, Json]:
    """Return the conversation of each face."""
    names = {"assistant": "model"}
    return {
        "chat": {"messages": [{"role": role, "content": text} for role, text in spoken]},
        "responses": {"input": [{"role": role, "content": text} for role, text in spoken]},
        "messages": {"messages": [{"role": role, "content": text} for role, text in spoken]},
        "native": {"contents": [{"role": names.get(role, role), "parts": [{"text": text}]} for role, text in spoken]},
    }


def tools(schema: Json, **more: Json) -> dict[str, Json]:
    """Return the request of each face with one function. `more`: further members by face."""
    name, description = "get_weather", "Weather of a city"
    request = turns(("user", "Weather in Paris?"))
    made: dict[str, Json] = {
        "chat": {
            "tools": [
                {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
            ]
        },
        "responses": {
            "tools": [
                {"type": "function", "name": name, "description": description, "parameters": schema, "strict": False}
            ]
        },
        "messages": {"tools": [{"name": name, "description": description, "input_schema": schema}]},
        "native": {
            "tools": [
                {"functionDeclarations": [{"name": name, "description": description, "parametersJsonSchema": schema}]}
            ]
        },
    }
    return {face: request[face] | made[face] | more.get(face, {}) for face in FACES}


TOOL_WAYS: dict[str, list[Way]] = {
    "chat": [Way({"tools": [{"function": {"name": "get_weather"}}]})],
    "responses": [Way({"tools": [{"name": "get_weather"}]})],
    "messages": [Way({"tools": [{"name": "get_weather"}]})],
    "native": [Way({"tools": [{"functionDeclarations": [{"name": "get_weather"}]}]})],
}


def native(**config: Any) -> Json:
    return {"generationConfig": config}


CHOSEN = {"type": "function", "function": {"name": "get_weather"}}
CALLING: Json = {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}
NAMED: Json = {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["get_weather"]}}}

TOOLS = [
    Feature("tools", tools(CITY), TOOL_WAYS, ("tools",), meaning=True),
    Feature("tool-schema", tools(HARD), TOOL_WAYS, ("tools",), meaning=True),
    Feature("tool-no-args", tools(NO_ARGUMENTS), TOOL_WAYS, ("tools",), meaning=True),
    Feature(
        "forced-tool",
        tools(
            CITY,
            chat={"tool_choice": "required"},
            responses={"tool_choice": "required"},
            messages={"tool_choice": {"type": "any"}},
            native=CALLING,
        ),
        {
            "chat": [
                Way({"tool_choice": "required"}),
                Way({"tool_choice": "any"}, frozenset({"mistral"})),
                Way({"tool_choice": CHOSEN}, demanded=False),
            ],
            "responses": [Way({"tool_choice": "required"})],
            "messages": [Way({"tool_choice": {"type": "any"}}), Way({"tool_choice": {"type": "tool"}})],
            "native": [Way(CALLING)],
        },
        ("tool_choice", "toolConfig", "functionCallingConfig"),
    ),
    Feature(
        "named-tool",
        tools(
            CITY,
            chat={"tool_choice": CHOSEN},
            responses={"tool_choice": {"type": "function", "name": "get_weather"}},
            messages={"tool_choice": {"type": "tool", "name": "get_weather"}},
            native=NAMED,
        ),
        {
            # there is one tool, so that any forced call is a call of it
            "chat": [Way({"tool_choice": CHOSEN}), Way({"tool_choice": "required"}, demanded=False)],
            "responses": [
                Way({"tool_choice": {"type": "function", "name": "get_weather"}}),
                Way({"tool_choice": "required"}, demanded=False),
            ],
            "messages": [
                Way({"tool_choice": {"type": "tool", "name": "get_weather"}}),
                Way({"tool_choice": {"type": "any"}}),
            ],
            "native": [Way(NAMED)],
        },
        ("tool_choice", "toolConfig", "functionCallingConfig"),
    ),
    Feature(
        "parallel-off",
        {
            face: request
            for face, request in tools(
                CITY,
                chat={"parallel_tool_calls": False},
                responses={"parallel_tool_calls": False},
                messages={"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
            ).items()
            if face != "native"
        },
        {
            "chat": [Way({"parallel_tool_calls": False})],
            "responses": [Way({"parallel_tool_calls": False})],
            "messages": [Way({"tool_choice": {"disable_parallel_tool_use": True}})],
        },
        ("parallel",),
    ),
    Feature(
        "tool-turn",
        {
            "chat": tools(CITY)["chat"]
            | {
                "messages": [
                    {"role": "user", "content": "Weather in Paris?"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "call_0123456789",
                                "type": "function",
                                "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                            }
                        ],
                    },
                    {"role": "tool", "tool_call_id": "call_0123456789", "content": ANSWER},
                ]
            },
            "responses": tools(CITY)["responses"]
            | {
                "input": [
                    {"role": "user", "content": "Weather in Paris?"},
                    {
                        "type": "function_call",
                        "call_id": "call_0123456789",
                        "name": "get_weather",
                        "arguments": '{"city":"Paris"}',
                    },
                    {"type": "function_call_output", "call_id": "call_0123456789", "output": ANSWER},
                ]
            },
            "messages": tools(CITY)["messages"]
            | {
                "messages": [
                    {"role": "user", "content": "Weather in Paris?"},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": {"city": "Paris"}}
                        ],
                    },
                    {
                        "role": "user",
                        "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": ANSWER}],
                    },
                ]
            },
            "native": tools(CITY)["native"]
            | {
                "contents": [
                    {"role": "user", "parts": [{"text": "Weather in Paris?"}]},
                    {
                        "role": "model",
                        "parts": [
                            {
                                "functionCall": {"name": "get_weather", "args": {"city": "Paris"}},
                                "thoughtSignature": "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
                            }
                        ],
                    },
                    {
                        "role": "user",
                        "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": ANSWER}}}],
                    },
                ]
            },
        },
        text_ways(ANSWER),
        meaning=True,
    ),
]


def _schema_requests(schema: Json) -> dict[str, Json]:
    request = turns(("user", "Answer in JSON."))
    made: dict[str, Json] = {
        "chat": {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}},
        "responses": {"text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": False}}},
        "messages": {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
        "native": native(responseMimeType="application/json", responseJsonSchema=schema),
    }
    return {face: request[face] | made[face] for face in FACES}


def _schema_ways(root: Mapping[str, Any]) -> dict[str, list[Way]]:
    """Return the ways of a schema with these properties, which may be part of the instructions where the vendor has JSON
    without a schema only.
    """
    made = dict.fromkeys(root["properties"], ANY)
    first = next(iter(made))
    return {
        "chat": [
            Way({"response_format": {"json_schema": {"schema": {"properties": made}}}}),
            Way({"response_format": {"type": "json_object"}}, NO_SCHEMAS, text=f'"{first}'),
        ],
        "responses": [Way({"text": {"format": {"schema": {"properties": made}}}})],
        "messages": [
            Way({"output_config": {"format": {"schema": {"properties": made}}}}, not_at=NO_FORMAT),
            Way(vendors=NO_FORMAT, text=f'"{first}'),
        ],
        "native": [
            Way({"generationConfig": {"responseJsonSchema": {"properties": made}}}),
            Way({"generationConfig": {"responseSchema": {"properties": made}}}),
        ],
    }


NO_SCHEMAS = frozenset({"deepseek", "zai", "dashscope", "moonshot", "minimax", "ark", "groq"})
NO_FORMAT = frozenset({"deepseek"})
"""Vendors whose messages have no format of the response."""
SCHEMA_NAMES = ("response_format", "text.format", "output_config.format", "Schema", "schema")
JSON_WAYS: dict[str, list[Way]] = {
    "chat": [Way({"response_format": {"type": "json_object"}})],
    "responses": [Way({"text": {"format": {"type": "json_object"}}})],
    "messages": [Way(text="JSON")],
    "native": [Way(native(responseMimeType="application/json"))],
}
SCHEMAS = [
    *(
        Feature(f"schema-{name}", _schema_requests(schema), _schema_ways(schema), SCHEMA_NAMES)
        for name, schema in (
            ("simple", SIMPLE),
            ("oneof", ONE_OF),
            ("bounds", WITH_BOUNDS),
            ("nested", NESTED),
            ("pydantic", PYDANTIC),
        )
    ),
    Feature(
        "schema-openapi",
        {
            "native": turns(("user", "Answer in JSON."))["native"]
            | native(responseMimeType="application/json", responseSchema=OPEN_API)
        },
        _schema_ways(OPEN_API),
        SCHEMA_NAMES,
    ),
    Feature(
        "json-no-word",
        {
            "native": turns(("user", "Name three colours."))["native"] | native(responseMimeType="application/json"),
        },
        JSON_WAYS,
        ("responseMimeType", "response_format", "format"),
    ),
    Feature(
        "json-object",
        {
            "chat": turns(("user", "Answer in JSON."))["chat"] | {"response_format": {"type": "json_object"}},
            "responses": turns(("user", "Answer in JSON."))["responses"]
            | {"text": {"format": {"type": "json_object"}}},
            "native": turns(("user", "Answer in JSON."))["native"] | native(responseMimeType="application/json"),
        },
        JSON_WAYS,
        ("responseMimeType", "response_format", "format"),
    ),
]


def scalar(
    feature: str, names: tuple[str, ...], harmless: bool = False, meaning: bool = False, **fragments: Json
) -> Feature:
    """Return a feature with the same members in the face and in the protocol of a format."""
    return Feature(
        feature,
        fragments,
        {protocol: [Way(fragment)] for protocol, fragment in fragments.items()},
        names,
        harmless=harmless,
        meaning=meaning,
    )


TOP_K = frozenset({"mistral", "dashscope"})
TAKES_USER = frozenset({"openai", "azure", "xai", "groq", "ark", "openrouter", "cerebras", "together", "moonshot"})
UNKNOWN_USER = frozenset({"dashscope", "minimax", "cohere", "ollama", "vllm"})
HAS_TIER = frozenset({"openai", "azure", "openrouter"})
USER_MEMBERS = ("user", "user_id", "safety_identifier")

SCALARS = [
    scalar(
        "temperature",
        ("temperature",),
        chat={"temperature": 0.2},
        responses={"temperature": 0.2},
        messages={"temperature": 0.2},
        native=native(temperature=0.2),
    ),
    scalar(
        "top_p",
        ("top_p", "topP"),
        chat={"top_p": 0.9},
        responses={"top_p": 0.9},
        messages={"top_p": 0.9},
        native=native(topP=0.9),
    ),
    Feature(
        "top_k",
        {"messages": {"top_k": 40}, "native": native(topK=40)},
        {
            "chat": [Way({"top_k": 40}, TOP_K), Way({"top_k": 40}, demanded=False)],
            "messages": [Way({"top_k": 40})],
            "native": [Way(native(topK=40))],
        },
        ("top_k", "topK"),
    ),
    Feature(
        "penalties",
        {
            "chat": {"presence_penalty": 0.5, "frequency_penalty": 0.5},
            "native": native(presencePenalty=0.5, frequencyPenalty=0.5),
        },
        {
            "chat": [Way({"presence_penalty": 0.5, "frequency_penalty": 0.5})],
            "native": [Way(native(presencePenalty=0.5, frequencyPenalty=0.5))],
        },
        ("penalty", "Penalty"),
    ),
    Feature(
        "logprobs",
        {
            "chat": {"logprobs": True, "top_logprobs": 2},
            "responses": {"top_logprobs": 2, "include": ["message.output_text.logprobs"]},
            "native": native(responseLogprobs=True, logprobs=2),
        },
        {
            "chat": [Way({"logprobs": True, "top_logprobs": 2})],
            "responses": [Way({"top_logprobs": 2, "include": ["message.output_text.logprobs"]})],
            "native": [Way(native(responseLogprobs=True, logprobs=2))],
        },
        ("logprobs", "Logprobs"),
    ),
    Feature(
        "n",
        {"chat": {"n": 2}, "native": native(candidateCount=2)},
        {"chat": [Way({"n": 2})], "native": [Way(native(candidateCount=2))]},
        ("n", "candidateCount", "candidate_count"),
        meaning=True,
    ),
    Feature(
        "seed",
        {"chat": {"seed": 42}, "native": native(seed=42)},
        {
            "chat": [Way({"seed": 42}, None), Way({"random_seed": 42}, frozenset({"mistral"}))],
            "native": [Way(native(seed=42))],
        },
        ("seed",),
    ),
    Feature(
        "stop",
        {
            "chat": {"stop": ["END"]},
            "messages": {"stop_sequences": ["END"]},
            "native": native(stopSequences=["END"]),
        },
        {
            "chat": [Way({"stop": ["END"]}), Way({"stop": "END"})],
            "messages": [Way({"stop_sequences": ["END"]})],
            "native": [Way(native(stopSequences=["END"]))],
        },
        ("stop",),
    ),
    Feature(
        "user",
        {
            "chat": {"user": LONG_USER},
            "responses": {"user": LONG_USER},
            "messages": {"metadata": {"user_id": LONG_USER}},
        },
        {
            "chat": [
                Way({"user": ANY}, TAKES_USER),
                Way({"safety_identifier": ANY}, frozenset({"openai", "azure", "moonshot"})),
                Way({"user_id": ANY}, frozenset({"deepseek", "zai"})),
                Way({"user": ANY}, UNKNOWN_USER, demanded=False),
            ],
            "responses": [Way({"user": ANY}), Way({"safety_identifier": ANY})],
            "messages": [Way({"metadata": {"user_id": ANY}})],
        },
        USER_MEMBERS,
    ),
    Feature(
        "tier",
        {"chat": {"service_tier": "priority"}, "responses": {"service_tier": "priority"}},
        {
            "chat": [Way({"service_tier": "priority"}, HAS_TIER), Way({"service_tier": "priority"}, demanded=False)],
            "responses": [
                Way({"service_tier": "priority"}, HAS_TIER),
                Way({"service_tier": "priority"}, demanded=False),
            ],
            "native": [Way({"serviceTier": "priority"})],
        },
        ("service_tier", "tier"),
    ),
    Feature("store", {"chat": {"store": False}, "responses": {"store": False}}, {}, ("store",), harmless=True),
    Feature(
        "long-max",
        {
            "chat": {"max_tokens": LONG},
            "responses": {"max_output_tokens": LONG},
            "messages": {"max_tokens": LONG},
            "native": native(maxOutputTokens=LONG),
        },
        {
            "chat": [Way({"max_tokens": LONG}), Way({"max_completion_tokens": LONG})],
            "responses": [Way({"max_output_tokens": LONG})],
            "messages": [Way({"max_tokens": LONG})],
            "native": [Way(native(maxOutputTokens=LONG))],
        },
        ("max",),
    ),
    Feature(
        "max-completion",
        {"chat": {"max_completion_tokens": 1000}},
        {
            "chat": [Way({"max_completion_tokens": 1000}), Way({"max_tokens": 1000})],
            "responses": [Way({"max_output_tokens": 1000})],
            "messages": [Way({"max_tokens": 1000})],
            "native": [Way(native(maxOutputTokens=1000))],
        },
        ("max",),
    ),
    Feature(
        "max-tokens",
        {
            "chat": {"max_tokens": 1000},
            "responses": {"max_output_tokens": 1000},
            "messages": {"max_tokens": 1000},
            "native": native(maxOutputTokens=1000),
        },
        {
            "chat": [Way({"max_completion_tokens": 1000}), Way({"max_tokens": 1000})],
            "responses": [Way({"max_output_tokens": 1000})],
            "messages": [Way({"max_tokens": 1000})],
            "native": [Way(native(maxOutputTokens=1000))],
        },
        ("max",),
    ),
]

SWITCHED = frozenset({"deepseek", "zai", "moonshot", "ark", "minimax"})
EFFORT_NAMES = ("effort", "reasoning", "thinking", "budget", "Budget", "Level")
BUDGET_OF_EFFORT = Way({"thinking": {"type": "enabled", "budget_tokens": ANY}}, demanded=False)


def _effort_ways(level: str) -> dict[str, list[Way]]:
    return {
        "chat": [
            Way({"reasoning_effort": level}),
            Way({"reasoning": {"effort": level}}, frozenset({"openrouter"})),
            Way({"enable_thinking": True}, frozenset({"dashscope"}), demanded=False),
        ],
        "responses": [Way({"reasoning": {"effort": level}})],
        "messages": [Way({"output_config": {"effort": level}}), BUDGET_OF_EFFORT],
        "native": [
            Way({"generationConfig": {"thinkingConfig": {"thinkingLevel": level.upper()}}}),
            Way({"generationConfig": {"thinkingConfig": {"thinkingBudget": ANY}}}, demanded=False),
        ],
    }


OFF_WAYS: dict[str, list[Way]] = {
    "chat": [
        Way({"reasoning_effort": "none"}),
        Way({"reasoning": {"effort": "none"}}, frozenset({"openrouter"})),
        Way({"reasoning": {"enabled": False}}, frozenset({"openrouter"})),
        Way({"thinking": {"type": "disabled"}}, SWITCHED),
        Way({"enable_thinking": False}, frozenset({"dashscope"})),
        Way({"chat_template_kwargs": {"enable_thinking": False}}, frozenset({"vllm"})),
    ],
    "responses": [
        Way({"reasoning": {"effort": "none"}}),
        Way({"reasoning": {"effort": "minimal"}}, frozenset({"ark"}), demanded=False),  # its word for no reasoning
    ],
    "messages": [Way({"thinking": {"type": "disabled"}})],
    "native": [Way({"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}})],
}


def _effort(level: str) -> Feature:
    requests: dict[str, Json] = {
        "chat": {"reasoning_effort": level},
        "responses": {"reasoning": {"effort": level}},
    }
    if level in ("low", "medium", "high", "xhigh", "max"):
        requests["messages"] = {"max_tokens": 20_000, "output_config": {"effort": level}}
    if level in ("minimal", "low", "medium", "high", "xhigh"):
        requests["native"] = native(thinkingConfig={"thinkingLevel": level.upper()})
    ways = OFF_WAYS if level == "none" else _effort_ways(level)
    return Feature(f"effort-{level}", requests, ways, EFFORT_NAMES)


REASONING = [
    *map(_effort, EFFORTS),
    Feature(
        "thinking-off",
        {
            "messages": {"thinking": {"type": "disabled"}},
            "native": native(thinkingConfig={"thinkingBudget": 0}),
        },
        OFF_WAYS,
        EFFORT_NAMES,
    ),
    Feature(
        "thinking-budget",
        {
            "messages": {"max_tokens": 8000, "thinking": {"type": "enabled", "budget_tokens": BUDGET}},
            "native": native(thinkingConfig={"thinkingBudget": BUDGET}),
        },
        {
            "chat": [
                Way({"thinking_budget": BUDGET}, frozenset({"dashscope"})),
                Way({"reasoning": {"max_tokens": BUDGET}}, frozenset({"openrouter"})),
            ],
            "messages": [Way({"thinking": {"type": "enabled", "budget_tokens": BUDGET}})],
            "native": [Way({"generationConfig": {"thinkingConfig": {"thinkingBudget": BUDGET}}})],
        },
        EFFORT_NAMES,
    ),
    Feature(
        "thinking-adaptive",
        {"messages": {"max_tokens": 8000, "thinking": {"type": "adaptive"}}},
        {},
        EFFORT_NAMES,
        harmless=True,
    ),
]


def _with_media(text: str, chat: Json, responses: Json, messages: Json, inline: Json) -> dict[str, Json]:
    return {
        "chat": {"messages": [{"role": "user", "content": [{"type": "text", "text": text}, chat]}]},
        "responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": text}, responses]}]},
        "messages": {"messages": [{"role": "user", "content": [{"type": "text", "text": text}, messages]}]},
        "native": {"contents": [{"role": "user", "parts": [{"text": text}, {"inlineData": inline}]}]},
    }


PREFIXED = frozenset({"mistral"})
STREAMED = {face: turns(("user", TEXT))[face] | {"stream": True} for face in FACES[:3]}
CONVERSATIONS = [
    Feature("plain", turns(("user", TEXT)), text_ways(TEXT), meaning=True),
    Feature("stream", {**STREAMED, "native": turns(("user", TEXT))["native"]}, text_ways(TEXT), meaning=True),
    Feature(
        "system",
        {
            "chat": turns(("system", BLUE), ("user", TEXT))["chat"],
            "responses": turns(("user", TEXT))["responses"] | {"instructions": BLUE},
            "messages": turns(("user", TEXT))["messages"] | {"system": BLUE},
            "native": turns(("user", TEXT))["native"] | {"systemInstruction": {"parts": [{"text": BLUE}]}},
        },
        text_ways(BLUE),
        meaning=True,
    ),
    Feature(
        "developer",
        {face: request for face, request in turns(("developer", BLUE), ("user", TEXT)).items() if face in FACES[:2]},
        text_ways(BLUE),
        meaning=True,
    ),
    Feature(
        "system-middle",
        {
            face: request
            for face, request in turns(
                ("user", "Hi."),
                ("assistant", "Hello."),
                ("system", "From now on answer only BLUE."),
                ("user", "Colour of the sky?"),
            ).items()
            if face != "native"
        },
        text_ways("From now on answer only BLUE."),
        meaning=True,
    ),
    Feature(
        "prefill",
        turns(("user", TEXT), ("assistant", BEGUN)),
        {
            "chat": [
                Way({"messages": [{"role": "assistant"}]}, text=BEGUN, last=True),
                Way({"messages": [{"role": "assistant", "prefix": True}]}, PREFIXED, text=BEGUN, last=True),
            ],
            "responses": [Way({"input": [{"role": "assistant"}]}, text=BEGUN, last=True)],
            "messages": [Way({"messages": [{"role": "assistant"}]}, text=BEGUN, last=True)],
            "native": [Way({"contents": [{"role": "model"}]}, text=BEGUN, last=True)],
        },
        ("messages", "input", "contents", "prefill"),
    ),
    Feature(
        "image",
        _with_media(
            "What is this?",
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
            {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            {"mimeType": "image/png", "data": PNG},
        ),
        text_ways(PNG),
        meaning=True,
    ),
    Feature(
        "pdf",
        _with_media(
            "What is this?",
            {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
            {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
            {"mimeType": "application/pdf", "data": PDF},
        ),
        text_ways(PDF),
        meaning=True,
    ),
]

AGENT_SYSTEM = Feature("system", {}, text_ways("You are an agent."), meaning=True)
AGENT_LIMIT = Feature(
    "max-tokens",
    {},
    {
        "chat": [Way({"max_completion_tokens": 8000}), Way({"max_tokens": 8000})],
        "responses": [Way({"max_output_tokens": 8000})],
        "messages": [Way({"max_tokens": 8000})],
        "native": [Way(native(maxOutputTokens=8000))],
    },
    ("max",),
)


def _sampled(name: str, native_name: str, value: float) -> Feature:
    ways = {protocol: [Way({name: value})] for protocol in FACES[:3]}
    return Feature(name, {}, {**ways, "native": [Way(native(**{native_name: value}))]}, (name, native_name))


AGENT = Feature(
    "agent",
    {
        "chat": tools(CITY)["chat"]
        | turns(("system", "You are an agent."), ("user", "Weather in Paris?"))["chat"]
        | {
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 0,
            "max_tokens": 8000,
            "tool_choice": "auto",
        },
        "responses": tools(CITY)["responses"]
        | {
            "instructions": "You are an agent.",
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "medium", "summary": "auto"},
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "prompt_cache_key": "k" * 36,
        },
        "messages": tools(CITY)["messages"]
        | {
            "max_tokens": 32_000,
            "system": [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}],
            "stream": True,
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "medium"},
            "metadata": {"user_id": LONG_USER},
        },
        "native": tools(CITY)["native"]
        | {
            "generationConfig": {
                "temperature": 1,
                "topP": 0.95,
                "topK": 64,
                "thinkingConfig": {"includeThoughts": True},
            },
            "systemInstruction": {"role": "user", "parts": [{"text": "You are an agent."}]},
        },
    },
    TOOL_WAYS,
    ("tools",),
    meaning=True,
    parts={
        "chat": (_sampled("temperature", "temperature", 0), AGENT_SYSTEM, AGENT_LIMIT),
        "responses": (_effort("medium"), AGENT_SYSTEM),
        "messages": (_effort("medium"), AGENT_SYSTEM, *(each for each in SCALARS if each.id == "user")),
        "native": (_sampled("top_p", "topP", 0.95), AGENT_SYSTEM),  # the temperature is the default of most vendors
    },
)

TEXT_FEATURES: Mapping[str, Feature] = {
    each.id: each for each in (*CONVERSATIONS, *TOOLS, *SCHEMAS, *REASONING, *SCALARS, AGENT)
}
"""Features of text generation, by id."""

BASES: Mapping[str, Json] = {
    "chat": turns(("user", TEXT))["chat"],
    "responses": {"input": [{"role": "user", "content": [{"type": "input_text", "text": TEXT}]}]},
    "messages": turns(("user", TEXT))["messages"] | {"max_tokens": 1000},
    "native": turns(("user", TEXT))["native"],
}
"""Face -> its smallest request, without the model."""

EMBEDDING_FACES = ("embeddings", "native_embedding")
DIMENSIONS = 512
EMBEDDING_FEATURES: Mapping[str, Feature] = {
    each.id: each
    for each in (
        Feature(
            "embed",
            {"embeddings": {}, "native_embedding": {}},
            {"embeddings": [Way(text="one")], "native_embeddings": [Way(text="one")]},
            meaning=True,
        ),
        Feature(
            "dimensions",
            {"embeddings": {"dimensions": DIMENSIONS}, "native_embedding": {"outputDimensionality": DIMENSIONS}},
            {
                "embeddings": [
                    Way({"dimensions": DIMENSIONS}),
                    Way({"output_dimension": DIMENSIONS}, frozenset({"mistral", "voyage"})),
                ],
                "native_embeddings": [Way(text="one")],
            },
            ("imension",),
            meaning=True,
        ),
        # vectors of floats are the default of every vendor
        Feature("float", {"embeddings": {"encoding_format": "float"}}, {}, ("encoding_format",), harmless=True),
        Feature(
            "user",
            {"embeddings": {"user": "somebody-1"}},
            {"embeddings": [Way({"user": ANY}, frozenset({"openai", "azure"})), Way({"user": ANY}, demanded=False)]},
            ("user",),
        ),
        Feature(
            "task",
            {"native_embedding": {"taskType": "RETRIEVAL_QUERY"}},
            {
                "embeddings": [Way({"input_type": "query"}, frozenset({"voyage"}), demanded=False)],
                "native_embeddings": [Way(text="RETRIEVAL_QUERY")],
            },
            ("task", "Type"),
        ),
    )
}
"""Features of embeddings, by id."""

EMBEDDING_BASES: Mapping[str, Json] = {
    "embeddings": {"input": ["one", "two"]},
    "native_embedding": {"content": {"parts": [{"text": "one"}]}},
    "native_embeddings": {"requests": []},
}
