"""Base URLs with usual mistakes, and the right ones."""

import pytest

from umg_grpc.operations.provider_call_paths import right_base_url


@pytest.mark.parametrize(
    ("base_url", "call", "right"),
    [
        ("https://a.example/v1/v1", "/chat/completions", "https://a.example/v1"),
        ("https://a.example:8443/api/v3/v3", "/models", "https://a.example:8443/api/v3"),
        ("https://a.example", "/chat/completions", "https://a.example/v1"),
        ("https://a.example/openai", "/models?limit=5", "https://a.example/openai/v1"),
        ("https://a.example/v1/chat", "/chat/completions", "https://a.example/v1"),
        ("https://a.example", "/models/gemini-x:generateContent", "https://a.example/v1beta"),
        ("https://a.example", "/rerank", "https://a.example/v1"),
        ("https://a.example", "/images/edits", "https://a.example/v1"),
        ("https://a.example", "/v1/video/generations", None),
        ("https://a.example", "/contents/generations/tasks", None),
        ("https://a.example/v1", "/chat/completions", None),
        ("https://a.example/v1/projects/v1x", "/chat/completions", None),
        ("https://a.example/v2", "/rerank", None),
        ("https://a.example", "/api/v1/services/aigc/video-generation/video-synthesis", None),
    ],
)
def test_the_usual_mistakes_of_an_address_are_known(base_url: str, call: str, right: str | None) -> None:
    assert right_base_url(base_url, call) == right
