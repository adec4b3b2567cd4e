"""All ways in which a body of each text format names an object in a provider's account, by the types of the official
SDKs and beyond them; and similar members that name none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Named:
    id: str
    format: str
    body: Mapping[str, Any]
    path: str
    name: str


@dataclass(frozen=True)
class Harmless:
    id: str
    format: str
    body: Mapping[str, Any]


def chat(*content: object, **fields: object) -> dict[str, Any]:
    return {"model": "m-chat", "messages": [{"role": "user", "content": list(content) or "Hi"}], **fields}


def responses(*items: object, **fields: object) -> dict[str, Any]:
    return {"model": "m-responses", "input": list(items) or "Hi", **fields}


def messages(*blocks: object, role: str = "user", **fields: object) -> dict[str, Any]:
    first = [{"role": "user", "content": "Hi"}] if role == "assistant" else []
    turns = [*first, {"role": role, "content": list(blocks) or "Hi"}]
    return {"model": "m-messages", "max_tokens": 9, "messages": turns, **fields}


def native(*parts: object, **fields: object) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": list(parts) or [{"text": "Hi"}]}], **fields}


def user_message(*parts: object) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def in_chat(name: str, value: object, path: str, found: str) -> Named:
    return Named(f"chat: {name} = {found[:60]}", "chat", chat(**{name: value}), path, found)


FILE = {"type": "file", "file_id": "file_1"}
SCREEN = {"type": "computer_screenshot", "file_id": "file_1"}
UPLOADED = "https://generativelanguage.googleapis.com/v1beta/files/abc"
PADDED = f"{UPLOADED}?pad={'x' * 3000}"
CORPUS = "projects/p/locations/l/ragCorpora/1"
STORE = "projects/p/locations/l/collections/c/dataStores/d"
SECRET = "projects/p/secrets/s/versions/1"
TEMPLATE = "projects/p/locations/l/templates/t"
AUTHORIZED = {"apiAuth": {"apiKeyConfig": {"apiKeySecretVersion": SECRET}}}


def tool(member: str, value: object) -> dict[str, Any]:
    return native(tools=[{member: value}])


def retrieval(**members: object) -> dict[str, Any]:
    return native(tools=[{"retrieval": members}])


def vertex(**members: object) -> dict[str, Any]:
    return retrieval(vertexAiSearch=members)


def rag(**members: object) -> dict[str, Any]:
    return retrieval(vertexRagStore=members)


def shell(**members: object) -> dict[str, Any]:
    return responses(tools=[{"type": "shell", "environment": members}])


def interpreter(container: object) -> dict[str, Any]:
    return responses(tools=[{"type": "code_interpreter", "container": container}])


CHAT = [
    Named("chat: sound that the model made", "chat", {"model": "m-chat", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "audio": {"id": "audio_1"}}, {"role": "user", "content": "Hi"}]}, "messages[1].audio.id", "audio_1"),
    Named("chat: a voice", "chat", chat(modalities=["text", "audio"], audio={"format": "wav", "voice": {"id": "voice_1"}}), "audio.voice.id", "voice_1"),
    Named("chat: an image in a bucket", "chat", chat({"type": "image_url", "image_url": {"url": "gs://b/a.png"}}), "messages[0].content[0].image_url.url", "gs://b/a.png"),
    Named("chat: a compared response", "chat", chat(prompt_cache_options={"comparison_response_id": "chatcmpl_1"}), "prompt_cache_options.comparison_response_id", "chatcmpl_1"),
    Named("chat: a cache", "chat", chat(extra_body={"google": {"cached_content": "cachedContents/1"}}), "extra_body.google.cached_content", "cachedContents/1"),
    in_chat("knowledge_id", "kb", "knowledge_id", "kb"),
    in_chat("file_ids", ["file_1"], "file_ids[0]", "file_1"),
    in_chat("fileIds", ["file_1"], "fileIds[0]", "file_1"),
    in_chat("data_sources", [{"type": "azure_search", "parameters": {"index_name": "theirs"}}], "data_sources[0].parameters.index_name", "theirs"),
    in_chat("dataset", "theirs", "dataset", "theirs"),
    in_chat("thread_id", "thread", "thread_id", "thread"),
    in_chat("assistant_id", "asst", "assistant_id", "asst"),
    in_chat("memory_id", "m", "memory_id", "m"),
    in_chat("batch_id", "b", "batch_id", "b"),
    in_chat("container", {"id": "c"}, "container.id", "c"),
    in_chat("attachments", ["file-abc123"], "attachments[0]", "file-abc123"),
    in_chat("worker", "agent_011CZkYpogX7uDKUyvBTophP", "worker", "agent_011CZkYpogX7uDKUyvBTophP"),
    in_chat("tuned", {"by": "ftjob-abc123"}, "tuned.by", "ftjob-abc123"),
    in_chat("state", " FILE-abc123", "state", " FILE-abc123"),
    in_chat("work", "operations/abc", "work", "operations/abc"),
    in_chat("documents", [{"ref": "gs://b/a.txt"}], "documents[0].ref", "gs://b/a.txt"),
    in_chat("something", {"deep": [{"resource": "projects/p/things/t"}]}, "something.deep[0].resource", "projects/p/things/t"),
    in_chat("knowledge_id", 1790045678901234567, "knowledge_id", "1790045678901234567"),
    in_chat("file_ids", [12345], "file_ids[0]", "12345"),
    in_chat("video", {"url": "mm_file://1"}, "video.url", "mm_file://1"),
    in_chat("video", {"url": PADDED}, "video.url", PADDED),
    in_chat("dataset", 7, "dataset", "7"),
    in_chat("files", ["abcdefghijk"], "files[0]", "abcdefghijk"),
    Named("chat: a file in the instructions", "chat", {"model": "m-chat", "messages": [{"role": "system", "content": "fileid://file-fe-1"}, {"role": "user", "content": "Hi"}]}, "messages[0].parts[0]", "file-fe-1"),
    Named("chat: a file in later instructions", "chat", {"model": "m-chat", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hi"}, {"role": "system", "content": "Read fileid://file-fe-1 now"}, {"role": "user", "content": "Hi"}]}, "messages[2].parts[0]", "file-fe-1"),
    Named("chat: a tool of a provider", "chat", chat(tools=[{"type": "retrieval", "retrieval": {"knowledge_id": "k"}}]), "tools[0].retrieval.knowledge_id", "k"),
    Named("chat: a member of a message", "chat", {"model": "m-chat", "messages": [{"role": "user", "content": "Hi", "file_ids": ["f"]}]}, "messages[0].file_ids[0]", "f"),
]  # fmt: skip

RESPONSES = [
    Named("responses: a continued response", "responses", responses(previous_response_id="resp_1"), "previous_response_id", "resp_1"),
    Named("responses: a conversation", "responses", responses(conversation="conv_1"), "conversation", "conv_1"),
    Named("responses: a conversation as an object", "responses", responses(conversation={"id": "conv_1"}), "conversation.id", "conv_1"),
    Named("responses: a prompt", "responses", responses(prompt={"id": "pmpt_1"}), "prompt.id", "pmpt_1"),
    Named("responses: a compared response", "responses", responses(prompt_cache_options={"comparison_response_id": "resp_1"}), "prompt_cache_options.comparison_response_id", "resp_1"),
    Named("responses: an image", "responses", responses(user_message({"type": "input_image", "file_id": "file_1"})), "input[0].content[0].file_id", "file_1"),
    Named("responses: a file", "responses", responses(user_message({"type": "input_file", "file_id": "file_1"})), "input[0].content[0].file_id", "file_1"),
    Named("responses: a file without a turn", "responses", responses({"type": "input_file", "file_id": "file_1"}), "input[0].file_id", "file_1"),
    Named("responses: an address in a bucket", "responses", responses(user_message({"type": "input_file", "file_url": "gs://b/a.pdf"})), "input[0].content[0].file_url", "gs://b/a.pdf"),
    Named("responses: in a tool's result", "responses", responses({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file", "file_id": "file_1"}]}), "input[0].output[0].file_id", "file_1"),
    Named("responses: a screen", "responses", responses({"type": "computer_call_output", "call_id": "c", "output": SCREEN}), "input[0].output.file_id", "file_1"),
    Named("responses: an item", "responses", responses({"type": "item_reference", "id": "msg_1"}), "input[0].id", "msg_1"),
    Named("responses: an item without a type", "responses", responses({"id": "msg_1"}), "input[0].id", "msg_1"),
    Named("responses: an item of a new type", "responses", responses({"type": "dream", "id": "dr_1", "text": "hm"}), "input[0].id", "dr_1"),
    Named("responses: a call by its id", "responses", responses({"type": "mcp_call", "id": "mcp_1"}), "input[0].id", "mcp_1"),
    Named("responses: a search by its id", "responses", responses({"type": "web_search_call", "id": "ws_1", "status": "completed"}), "input[0].id", "ws_1"),
    Named("responses: thoughts by their id", "responses", responses({"type": "reasoning", "id": "rs_1", "summary": []}), "input[0].id", "rs_1"),
    Named("responses: thoughts with no text", "responses", responses({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{}]}), "input[0].id", "rs_1"),
    Named("responses: the container of code that ran", "responses", responses({"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "container_id": "cntr_1", "outputs": []}), "input[0].container_id", "cntr_1"),
    Named("responses: thoughts without state", "responses", responses({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": ""}), "input[0].id", "rs_1"),
    Named("responses: a compaction by its id", "responses", responses({"type": "compaction", "id": "cmp_1"}), "input[0].id", "cmp_1"),
    Named("responses: an image that the model made", "responses", responses({"type": "image_generation_call", "id": "ig_1"}), "input[0].id", "ig_1"),
    Named("responses: stores", "responses", responses(tools=[{"type": "file_search", "vector_store_ids": ["vs_1"]}]), "tools[0].vector_store_ids[0]", "vs_1"),
    Named("responses: a container", "responses", interpreter("cntr_1"), "tools[0].container", "cntr_1"),
    Named("responses: files of a container", "responses", interpreter({"type": "auto", "file_ids": ["file_1"]}), "tools[0].container.file_ids[0]", "file_1"),
    Named("responses: a container of a shell", "responses", shell(type="container_reference", container_id="cntr_1"), "tools[0].environment.container_id", "cntr_1"),
    Named("responses: files of a shell", "responses", shell(type="container_auto", file_ids=["file_1"]), "tools[0].environment.file_ids[0]", "file_1"),
    Named("responses: a skill", "responses", shell(type="container_auto", skills=[{"type": "skill_reference", "skill_id": "skill_1"}]), "tools[0].environment.skills[0].skill_id", "skill_1"),
    Named("responses: the container of a call", "responses", responses({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}, "environment": {"type": "container_reference", "container_id": "cntr_1"}}), "input[0].environment.container_id", "cntr_1"),
    Named("responses: a mask", "responses", responses(tools=[{"type": "image_generation", "input_image_mask": {"file_id": "file_1"}}]), "tools[0].input_image_mask.file_id", "file_1"),
    Named("responses: a connector", "responses", responses(tools=[{"type": "mcp", "server_label": "d", "connector_id": "connector_dropbox"}]), "tools[0].connector_id", "connector_dropbox"),
    Named("responses: a tunnel", "responses", responses(tools=[{"type": "mcp", "server_label": "d", "tunnel_id": "t"}]), "tools[0].tunnel_id", "t"),
    Named("responses: a tool that an item declares", "responses", responses({"type": "additional_tools", "role": "developer", "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}]}), "input[0].tools[0].vector_store_ids[0]", "vs_1"),
    Named("responses: an unknown member", "responses", responses(knowledge_base="kb"), "knowledge_base", "kb"),
    Named("responses: an unknown member of a tool", "responses", responses(tools=[{"type": "new", "source": {"bucket": "b"}}]), "tools[0].source.bucket", "b"),
]  # fmt: skip

MESSAGES = [
    Named("messages: a file in the instructions", "messages", messages(system="fileid://file-fe-1"), "instructions[0]", "file-fe-1"),
    Named("messages: a file", "messages", messages({"type": "document", "source": FILE}), "messages[0].content[0].source.file_id", "file_1"),
    Named("messages: an image", "messages", messages({"type": "image", "source": FILE}), "messages[0].content[0].source.file_id", "file_1"),
    Named("messages: an address in a bucket", "messages", messages({"type": "image", "source": {"type": "url", "url": "gs://b/a.png"}}), "messages[0].content[0].source.url", "gs://b/a.png"),
    Named("messages: in pieces", "messages", messages({"type": "document", "source": {"type": "content", "content": [{"type": "image", "source": FILE}]}}), "messages[0].content[0].source.content[0].source.file_id", "file_1"),
    Named("messages: in a tool's result", "messages", messages({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": FILE}]}), "messages[0].content[0].content[0].source.file_id", "file_1"),
    Named("messages: an upload", "messages", messages({"type": "container_upload", "file_id": "file_1"}), "messages[0].content[0].file_id", "file_1"),
    Named("messages: an upload in the model's turn", "messages", messages({"type": "container_upload", "file_id": "file_1"}, role="assistant"), "messages[1].content[0].file_id", "file_1"),
    Named("messages: a new block", "messages", messages({"type": "dream", "corpus": "theirs"}), "messages[0].content[0].corpus", "theirs"),
    Named("messages: a container", "messages", messages(container="container_1"), "container", "container_1"),
    Named("messages: a container with skills", "messages", messages(container={"id": "container_1", "skills": []}), "container.id", "container_1"),
    Named("messages: a skill", "messages", messages(container={"skills": [{"type": "custom", "skill_id": "skill_1", "version": "1"}]}), "container.skills[0].skill_id", "skill_1"),
    Named("messages: an earlier message", "messages", messages(diagnostics={"previous_message_id": "msg_1"}), "diagnostics.previous_message_id", "msg_1"),
    Named("messages: an unknown member", "messages", messages(file_ids=["file_1"]), "file_ids[0]", "file_1"),
    Named("messages: a member of a tool", "messages", messages(tools=[{"type": "search_20270101", "name": "s", "datastore": "d"}]), "tools[0].datastore", "d"),
]  # fmt: skip

NATIVE = [
    Named("native: a cache", "native", native(cachedContent="cachedContents/1"), "cachedContent", "cachedContents/1"),
    Named("native: a cache in the other spelling", "native", native(cached_content="cachedContents/1"), "cached_content", "cachedContents/1"),
    Named("native: a file", "native", native({"fileData": {"fileUri": UPLOADED, "mimeType": "image/png"}}), "contents[0].parts[0].fileData.fileUri", UPLOADED),
    Named("native: a file of a signed-in user", "native", native({"fileData": {"fileUri": "https://storage.cloud.google.com/b/a.png"}}), "contents[0].parts[0].fileData.fileUri", "https://storage.cloud.google.com/b/a.png"),
    Named("native: a file in the other spelling", "native", native({"file_data": {"file_uri": UPLOADED}}), "contents[0].parts[0].file_data.file_uri", UPLOADED),
    Named("native: a file by another address", "native", native({"fileData": {"fileUri": UPLOADED + "?alt=media"}}), "contents[0].parts[0].fileData.fileUri", UPLOADED + "?alt=media"),
    Named("native: a file by its name", "native", native({"fileData": {"fileUri": "files/abc"}}), "contents[0].parts[0].fileData.fileUri", "files/abc"),
    Named("native: a file in a bucket", "native", native({"fileData": {"fileUri": "gs://b/a.png", "mimeType": "image/png"}}), "contents[0].parts[0].fileData.fileUri", "gs://b/a.png"),
    Named("native: a file of the system's", "native", native(systemInstruction={"parts": [{"fileData": {"fileUri": UPLOADED}}]}), "systemInstruction.parts[0].fileData.fileUri", UPLOADED),
    Named("native: in a tool's result", "native", native({"functionResponse": {"name": "f", "response": {}, "parts": [{"fileData": {"fileUri": UPLOADED}}]}}), "contents[0].parts[0].functionResponse.parts[0].fileData.fileUri", UPLOADED),
    Named("native: stores", "native", tool("fileSearch", {"fileSearchStoreNames": ["fileSearchStores/1"]}), "tools[0].fileSearch.fileSearchStoreNames[0]", "fileSearchStores/1"),
    Named("native: a datastore", "native", vertex(datastore=STORE), "tools[0].retrieval.vertexAiSearch.datastore", STORE),
    Named("native: an engine", "native", vertex(engine="e"), "tools[0].retrieval.vertexAiSearch.engine", "e"),
    Named("native: datastores of an engine", "native", vertex(dataStoreSpecs=[{"dataStore": "d"}]), "tools[0].retrieval.vertexAiSearch.dataStoreSpecs[0].dataStore", "d"),
    Named("native: a corpus", "native", rag(ragResources=[{"ragCorpus": CORPUS}]), "tools[0].retrieval.vertexRagStore.ragResources[0].ragCorpus", CORPUS),
    Named("native: a corpus in the other spelling", "native", rag(rag_resources=[{"rag_corpus": CORPUS}]), "tools[0].retrieval.vertexRagStore.rag_resources[0].rag_corpus", CORPUS),
    Named("native: corpora", "native", rag(ragCorpora=[CORPUS]), "tools[0].retrieval.vertexRagStore.ragCorpora[0]", CORPUS),
    Named("native: files of a corpus", "native", rag(ragResources=[{"ragFileIds": ["f"]}]), "tools[0].retrieval.vertexRagStore.ragResources[0].ragFileIds[0]", "f"),
    Named("native: a secret", "native", retrieval(externalApi={"endpoint": "https://search.example", **AUTHORIZED}), "tools[0].retrieval.externalApi.apiAuth.apiKeyConfig.apiKeySecretVersion", SECRET),
    Named("native: a secret of maps", "native", tool("googleMaps", {"authConfig": {"apiKeyConfig": {"apiKeySecret": SECRET}}}), "tools[0].googleMaps.authConfig.apiKeyConfig.apiKeySecret", SECRET),
    Named("native: a service account", "native", tool("googleMaps", {"authConfig": {"googleServiceAccountConfig": {"serviceAccount": "a@p.example"}}}), "tools[0].googleMaps.authConfig.googleServiceAccountConfig.serviceAccount", "a@p.example"),
    Named("native: a template of prompts", "native", native(modelArmorConfig={"promptTemplateName": TEMPLATE}), "modelArmorConfig.promptTemplateName", TEMPLATE),
    Named("native: a template of answers", "native", native(modelArmorConfig={"responseTemplateName": TEMPLATE}), "modelArmorConfig.responseTemplateName", TEMPLATE),
    Named("native: an unknown tool", "native", tool("newSearch", {"notebook": "n"}), "tools[0].newSearch.notebook", "n"),
    Named("native: an unknown part", "native", native({"dream": {"id": "d"}}), "contents[0].parts[0].dream.id", "d"),
]  # fmt: skip

NAMED = [*CHAT, *RESPONSES, *MESSAGES, *NATIVE]

SCHEMA = {"type": "object", "properties": {"file_id": {"type": "string", "default": "gs://b/a"}, "id": {"const": "x"}}}
RAN = {"type": "code_execution_tool_result", "tool_use_id": "t", "content": {"type": "x", "content": [{"file_id": "file_1"}]}}  # fmt: skip
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
OPEN = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]}
WHOLE = [
    SEALED,
    OPEN,
    {"type": "reasoning", "id": "rs_umg_1", "summary": []},
    {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "file-abc123", "annotations": [{"type": "file_citation", "file_id": "file_1"}]}]},
    {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"file_id":"x"}'},
    {"type": "function_call_output", "id": "fco_1", "call_id": "call_1", "output": "gs://b/a"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "run", "input": "gs://b/a"},
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "projects/p/things/t"},
    {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}},
    {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "container_id": "", "outputs": [{"type": "logs", "logs": "gs://b/a"}]},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f", "arguments": "{}", "output": "gs://b/a"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    {"type": "computer_call", "id": "cu_1", "call_id": "call_3", "pending_safety_checks": [{"id": "sc_1"}], "action": {"type": "screenshot"}, "status": "completed"},
    {"type": "image_generation_call", "id": "ig_1", "result": "AAAA", "status": "completed"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"},
]  # fmt: skip

HARMLESS = [
    Harmless("chat: words", "chat", chat({"type": "text", "text": "file_id: gs://b/file-abc123"})),
    Harmless("chat: a public image", "chat", chat({"type": "image_url", "image_url": {"url": "https://a.example/files/1.png"}})),
    Harmless("chat: inline data", "chat", chat({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})),
    Harmless("chat: labels", "chat", chat(user="file-abc123", safety_identifier="thread_abc123", prompt_cache_key="conv_abc123", metadata={"file_id": "x", "id": "y"})),
    Harmless("chat: labels of other gateways", "chat", chat(user_id="u", session_id="s", trace={"trace_id": "t", "id": "x"}, litellm_trace_id="t", request_id="r", chat_id="c", id="x")),
    Harmless("chat: settings", "chat", chat(keep_alive="5m", id_slot=3, stop_token_ids=[1, 2], store=True, provider={"order": ["a"]}, plugins=[{"id": "web"}], lora=[{"id": 0, "scale": 0.5}], cwd="C:/Users/a")),
    Harmless("chat: tools", "chat", chat(tools=[{"type": "function", "function": {"name": "file_search", "parameters": SCHEMA}}])),
    Harmless("chat: a schema", "chat", chat(response_format={"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}})),
    Harmless("chat: calls", "chat", {"model": "m-chat", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "id": "msg_1", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"file_id":"x"}'}}]}, {"role": "tool", "tool_call_id": "call_1", "content": "gs://b/a"}]}),
    Harmless("responses: labels", "responses", responses(user="file-abc123", prompt_cache_key="thread_abc123", metadata={"file_id": "x"}, client_metadata={"thread_id": "t", "session_id": "s"})),
    Harmless("responses: whole items", "responses", responses(*WHOLE)),
    Harmless("responses: a new container", "responses", interpreter({"type": "auto", "memory_limit": "4g"})),
    Harmless("responses: a server", "responses", responses(tools=[{"type": "mcp", "server_label": "s", "server_url": "https://a.example/mcp", "headers": {"x-file-id": "f"}}])),
    Harmless("responses: tools", "responses", responses(tools=[{"type": "function", "name": "f", "parameters": SCHEMA}, {"type": "web_search"}, {"type": "shell", "environment": {"type": "local"}}])),
    Harmless("messages: labels", "messages", messages(metadata={"user_id": "u", "file_id": "x"}, user_profile_id="p")),
    Harmless("messages: thoughts and calls", "messages", messages({"type": "thinking", "thinking": "hm", "signature": "c2VjcmV0"}, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"file_id": "x"}}, role="assistant")),
    Harmless("messages: output of the provider's tools", "messages", messages({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}}, RAN, role="assistant")),
    Harmless("messages: a result", "messages", messages({"type": "tool_result", "tool_use_id": "t", "content": "gs://b/a"})),
    Harmless("messages: a new container with public skills", "messages", messages(container={"skills": [{"type": "anthropic", "skill_id": "pptx", "version": "latest"}]})),
    Harmless("messages: tools", "messages", messages(tools=[{"name": "f", "input_schema": SCHEMA, "input_examples": [{"file_id": "x"}]}])),
    Harmless("messages: a server", "messages", messages(mcp_servers=[{"type": "url", "name": "s", "url": "https://a.example/mcp", "authorization_token": "file-abc123"}])),
    Harmless("native: a public file", "native", native({"fileData": {"fileUri": "https://a.example/a.png", "mimeType": "image/png"}})),
    Harmless("native: a video", "native", native({"fileData": {"fileUri": "https://www.youtube.com/watch?v=1"}})),
    Harmless("native: calls", "native", native({"functionResponse": {"id": "1", "name": "f", "response": {"file_id": "gs://b/a"}}})),
    Harmless("native: labels", "native", native(labels={"file_id": "x"})),
    Harmless("native: tools", "native", native(tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}, {"googleSearch": {}}, {"urlContext": {}}])),
]  # fmt: skip
