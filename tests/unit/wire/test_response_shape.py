"""Clients whose answers have the SDKs' form."""

from collections.abc import Mapping
from dataclasses import dataclass

import anthropic
import cohere
import openai
import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_shape_selection import client_shape
from umg_grpc.wire.unary_format_interface import ClientShape

SDK, DOCUMENTED = ClientShape.SDK, ClientShape.DOCUMENTED


@dataclass(frozen=True)
class Client:
    id: str
    headers: Mapping[str, str]
    shape: ClientShape = SDK


CLIENTS = [
    Client("nobody", {}, DOCUMENTED),
    Client("curl", {"User-Agent": "curl/8.5.0", "Accept": "*/*"}, DOCUMENTED),
    Client("requests, LangChain's Jina", {"User-Agent": "python-requests/2.32.3"}, DOCUMENTED),
    Client("a browser", {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}, DOCUMENTED),
    Client("someone who talks of cohere", {"User-Agent": "my-app/1 (not cohere)"}, DOCUMENTED),
    Client("another Fern SDK", {"X-Fern-SDK-Name": "elevenlabs"}, DOCUMENTED),
    Client("an empty agent", {"User-Agent": ""}, DOCUMENTED),
    Client("openai, Python", {"User-Agent": "OpenAI/Python 2.6.1"}),
    Client("openai, asynchronous", {"User-Agent": "AsyncOpenAI/Python 2.6.1"}),
    Client("openai, Azure", {"User-Agent": "AzureOpenAI/JS 6.7.0"}),
    Client("a Stainless SDK", {"User-Agent": "x", "X-Stainless-Lang": "js"}),
    Client("AI SDK", {"User-Agent": "ai/7.0.173 ai-sdk/cohere/5.0.9 ai-sdk/provider-utils/5.0.3 runtime/node.js/22"}),
    Client("cohere 7, Python", {"User-Agent": "cohere/7.3.1", "X-Fern-SDK-Name": "cohere"}),
    Client("cohere 5, Python", {"User-Agent": "python-httpx/0.28.1", "X-Fern-SDK-Name": "cohere"}),
    Client("cohere, JavaScript", {"User-Agent": "cohere-ai/8.1.0", "X-Fern-SDK-Name": "cohere-ai"}),
    Client("cohere, older JavaScript", {"User-Agent": "node", "X-Fern-SDK-Name": "cohere-ai"}),
    Client("cohere, Java", {"User-Agent": "okhttp/4.12.0", "X-Fern-SDK-Name": "com.cohere.fern:api-sdk"}),
    Client("cohere, Go", {"X-Fern-SDK-Name": "github.com/cohere-ai/cohere-go/v2"}),
    Client("curl with the header", {"User-Agent": "curl/8.5.0", "X-UMG-Shape": "sdk"}),
    Client("an SDK with the header", {"User-Agent": "cohere/7.3.1", "X-UMG-Shape": "documented"}, DOCUMENTED),
]


@pytest.mark.parametrize("case", CLIENTS, ids=lambda case: case.id)
def test_a_client_is_recognised_by_its_headers(case: Client) -> None:
    lower = {name.lower(): value for name, value in case.headers.items()}
    for headers in (lower, CIMultiDict(case.headers), CIMultiDictProxy(CIMultiDict(case.headers))):
        assert client_shape(headers) is case.shape


def test_the_installed_sdks_are_distinguished_from_curl() -> None:
    installed: list[Mapping[str, object]] = [
        cohere.Client("k")._client_wrapper.get_headers(),
        cohere.ClientV2("k")._client_wrapper.get_headers(),
        openai.OpenAI(api_key="k").default_headers,
        openai.AsyncOpenAI(api_key="k").default_headers,
        anthropic.Anthropic(api_key="k").default_headers,
    ]
    for headers in installed:
        sent = CIMultiDict({name: value for name, value in headers.items() if isinstance(value, str)})
        assert client_shape(sent) is SDK


@pytest.mark.parametrize("header", ["", "SDK", "openai", "documented, sdk"])
def test_any_other_shape_is_refused(header: str) -> None:
    with pytest.raises(UmgError) as caught:
        client_shape({"x-umg-shape": header})
    assert caught.value.reason == pb.ERROR_REASON_INVALID_FIELD
    assert caught.value.metadata == {"field": "x-umg-shape"}
