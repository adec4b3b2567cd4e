"""Valid calls of the operations, which the gateway answers with success."""

from dataclasses import dataclass
from typing import Any

from tests.proofs.openapi.gateway import MODELS

TEXT = "Say hello"
_NATIVE = {"contents": [{"role": "user", "parts": [{"text": TEXT}]}]}
_CONTENT = [{"type": "text", "text": TEXT}]
_IMAGE = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class Call:
    path: str
    """As in the document."""
    body: dict[str, Any] | None = None
    method: str = "post"
    query: str = ""
    parameters: tuple[tuple[str, str], ...] = ()
    """Values of the parameters in the path."""

    @property
    def id(self) -> str:
        return f"{self.method} {self.path}{self.query}"

    @property
    def target(self) -> str:
        path = self.path
        for name, value in self.parameters:
            path = path.replace(f"{{{name}}}", value)
        return path + self.query


def _native(root: str, action: str, body: dict[str, Any], query: str = "", model: str = "generat") -> Call:
    return Call(f"{root}/models/{{model}}:{action}", body, query=query, parameters=(("model", MODELS[model]),))


_ROOTS = ("/v1", "/v1beta")
_PART = {"content": {"parts": [{"text": TEXT}]}}
_CHAT = {"model": MODELS["chat"], "messages": [{"role": "user", "content": TEXT}]}
_RESPONSE = {"model": MODELS["responses"], "input": TEXT}
_MESSAGE = {"model": MODELS["messages"], "messages": [{"role": "user", "content": TEXT}], "max_tokens": 20}
_RANK = {"model": MODELS["rank"], "query": TEXT, "documents": ["hello", "goodbye"]}
_PICTURE = {"model": MODELS["image"], "prompt": TEXT}
_CANONICAL = {"messages": [{"role": "ROLE_USER", "parts": [{"text": {"text": TEXT}}]}], "model": MODELS["chat"]}

CALLS = (
    Call("/v1/chat/completions", _CHAT),
    Call("/v1/chat/completions", _CHAT | {"stream": True}),
    Call("/v1/responses", _RESPONSE),
    Call("/v1/responses", _RESPONSE | {"stream": True}),
    Call("/v1/responses/compact", _RESPONSE),
    Call("/v1/responses/input_tokens", _RESPONSE),
    Call("/v1/messages", _MESSAGE),
    Call("/v1/messages", _MESSAGE | {"stream": True}),
    Call("/v1/messages/count_tokens", _MESSAGE),
    *(_native(root, "generateContent", _NATIVE) for root in _ROOTS),
    *(_native(root, "streamGenerateContent", _NATIVE, query) for root in _ROOTS for query in ("", "?alt=sse")),
    *(_native(root, "countTokens", _NATIVE) for root in _ROOTS),
    *(_native(root, "embedContent", _PART, model="embed") for root in _ROOTS),
    *(_native(root, "batchEmbedContents", {"requests": [_PART]}, model="embed") for root in _ROOTS),
    Call("/v1/embeddings", {"model": MODELS["embed"], "input": TEXT}),
    Call("/v1/rerank", _RANK),
    Call("/v2/rerank", _RANK | {"return_documents": True}),
    Call("/v1/audio/speech", {"model": MODELS["speech"], "input": TEXT, "voice": "alloy", "stream_format": "sse"}),
    Call("/v1/moderations", {"model": MODELS["moderat"], "input": [TEXT, TEXT]}),
    Call("/v1/images/generations", _PICTURE),
    Call("/v1/images/generations", _PICTURE | {"stream": True}),
    Call("/v1/images/edits", _PICTURE | {"image": _IMAGE}),
    Call("/v1/video/generations", {"model": "vidA-2", "prompt": TEXT}),
    Call("/v1/videos", {"model": "vidA-2", "prompt": TEXT}),
    Call("/v1/videos", method="get"),
    Call("/vidD/api/v3/contents/generations/tasks", {"model": "vidD-1-5-pro-251215", "content": _CONTENT}),
    Call("/vidE/v1/videos/text2video", {"model": "vidE-v1-6", "prompt": TEXT}),
    Call("/vidE/text-to-video/{model}", {"prompt": TEXT}, parameters=(("model", "vidE-3.0-turbo"),)),
    Call("/v1/models", method="get"),
    Call("/v1/models/{model}", method="get", parameters=(("model", MODELS["chat"]),)),
    Call("/v1beta/models", method="get"),
    Call("/v1beta/models/{model}", method="get", parameters=(("model", MODELS["chat"]),)),
    Call("/admin/v1/keys", {"settings": {"name": "a key"}}),
    Call("/admin/v1/keys", method="get"),
    Call("/admin/v1/keys/{key_id}", method="get", parameters=(("key_id", "self"),)),
    Call("/admin/v1/keys/{key_id}/usage", method="get", parameters=(("key_id", "self"),)),
    Call("/admin/v1/usage", method="get"),
    Call("/admin/v1/usage/end-users", method="get"),
    Call("/admin/v1/summary", method="get"),
    Call("/admin/v1/requests", method="get"),
    Call("/admin/v1/channels", method="get"),
    Call("/admin/v1/models", method="get"),
    Call("/admin/v1/alerts", method="get"),
    Call("/admin/v1/tasks", method="get"),
    Call("/admin/v1/projects", {"settings": {"name": "a project"}}),
    *(Call(f"/admin/v1/{path}", method="get") for path in ("organizations", "projects", "users", "audit")),
    Call("/umg.v1.GenerationService/Generate", _CANONICAL),
    Call("/umg.v1.GenerationService/CountTokens", {"request": _CANONICAL}),
    Call("/umg.v1.ModelService/ListModels", {}),
    Call("/umg.v1.ModelService/GetModel", {"model": MODELS["chat"]}),
    Call("/umg.v1.AdminService/ListKeys", {}),
    Call("/umg.v1.AdminService/ListChannels", {}),
    Call("/umg.v1.AdminService/GetCallSummary", {}),
    Call("/umg.v1.AccountService/ListAccounts", {}),
    Call("/umg.v1.UserService/ListUsers", {}),
    Call("/umg.v1.UserService/GetCaller", {}),
    Call("/umg.v1.AuditService/ListAuditEvents", {}),
    Call("/umg.v1.TaskService/ListTasks", {}),
    Call("/umg.v1.ConfigService/GetConfig", {}),
    Call("/umg.v1.ModelPriceService/ListModelPrices", {}),
    *(Call(path, method="get") for path in ("/", "/api/hello", "/healthz", "/readyz", "/metrics")),
)
