"""Credentials in the query, by a signature of AWS, and of a program, at providers that verify them."""

import json
import shlex
import sys
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from aiohttp import ClientSession, web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from structlog.testing import capture_logs

from tests.support.gateways import Running, running
from tests.support.providers.scripted import Scripted, succeed
from tests.support.providers.server import ReceivedRequest, serve_provider
from umg_grpc.config import parse

SECRET = "a/secret+access-key"
HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@dataclass
class Verifying(Scripted):
    tokens: set[str] = field(default_factory=set)

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if (problem := self.problem(received)) is not None:
            return web.json_response({"error": {"message": problem}}, status=401)
        return await super().answer(request, received)

    def problem(self, received: ReceivedRequest) -> str | None:
        """Return why the credentials are refused; None if they are right."""
        token = received.headers.get("authorization", "").removeprefix("Bearer ")
        return None if token in self.tokens else f"The token {token} has ended."


class Azure(Verifying):
    """Provider with the version and the key in the query."""

    def problem(self, received: ReceivedRequest) -> str | None:
        if received.query.get("api-version") != "2024-10-21":
            return "api-version is missing"
        key = received.query.get("code", "")
        return None if key == "k&y/1" else f"The key {key} is wrong, not {self.tokens}."


class Aws(Verifying):
    """Provider that computes the signature by the vendor's library."""

    def problem(self, received: ReceivedRequest) -> str | None:
        headers = received.headers
        signed = {name: headers[name] for name in ("content-type", "x-amz-content-sha256", "x-amz-security-token")}
        if signed["x-amz-content-sha256"] != sha256(received.body).hexdigest():
            return "the body was changed"
        request = AWSRequest("POST", self.url + received.path, {**signed, "host": urlsplit(self.url).netloc})
        request.data = received.body
        request.context["timestamp"] = request.headers["X-Amz-Date"] = headers["x-amz-date"]
        auth = SigV4Auth(Credentials("AKIDEXAMPLE", SECRET, "session"), "bedrock", "eu-central-1")
        signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        return None if headers["authorization"].endswith(f"Signature={signature}") else "the signature is wrong"


async def call(made: Running) -> tuple[int, str]:
    async with (
        ClientSession() as session,
        session.post(f"{made.url}/v1/chat/completions", json=HELLO, headers=made.headers) as response,
    ):
        return response.status, await response.text()


def config(url: str, lines: str) -> str:
    return f"channels:\n- name: a\n  protocols: [chat]\n  base_url: {url}/v1\n  models: [m]\n{lines}"


async def test_parameters_and_the_key_are_in_the_query_and_in_no_log(tmp_path: Path) -> None:
    auth = "  api_key: ['k&y/1']\n  auth: {kind: query, parameter: code}\n  query: {api-version: 2024-10-21}\n"
    async with serve_provider(Azure(name="azure", scripts=[succeed])) as provider:
        async with running(config(provider.url, auth), tmp_path / "a") as made:
            assert (await call(made))[0] == 200
        with capture_logs() as logs:
            async with running(config(provider.url, auth.replace("k&y/1", "wr&ng/key")), tmp_path / "b") as made:
                status, body = await call(made)
    assert status == 502
    assert "wr&ng" not in body + str(logs)
    assert "wr%26ng" not in body + str(logs)
    failed = next(line for line in logs if line["event"] == "channel failed")
    assert failed["upstream_message"] == "The key [key] is wrong, not set()."


async def test_a_request_is_signed_as_the_library_of_aws_signs_it(tmp_path: Path) -> None:
    auth = (
        f"  api_key: AKIDEXAMPLE:{SECRET}:session\n"
        "  auth: {kind: access_key, scheme: aws, region: eu-central-1, service: bedrock}\n"
    )
    async with (
        serve_provider(Aws(name="bedrock", scripts=[succeed])) as provider,
        running(config(provider.url, auth), tmp_path) as made,
    ):
        assert (await call(made))[0] == 200
        assert SECRET not in str(provider.received)


class AwsConverse(Aws):
    """Provider of Converse, which verifies the path as it was sent."""

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if (problem := self.problem(replace(received, path=request.raw_path))) is not None:
            return web.json_response({"message": problem}, status=403)
        message = {"role": "assistant", "content": [{"text": "Hello"}]}
        usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
        return web.json_response({"output": {"message": message}, "stopReason": "end_turn", "usage": usage})


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("us.amazon.nova-pro-v1:0", "/model/us.amazon.nova-pro-v1:0/converse"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0",
            "/model/arn:aws:bedrock:us-east-1:123456789012:inference-profile%2Fus.amazon.nova-pro-v1:0/converse",
        ),
    ],
)
async def test_the_id_of_a_model_and_an_arn_are_signed_as_they_are_sent(tmp_path: Path, model: str, path: str) -> None:
    async with serve_provider(AwsConverse(name="bedrock", scripts=[])) as provider:
        channel = (
            f"channels:\n- name: a\n  protocols: [converse]\n  base_url: {provider.url}\n"
            f"  models: [{{id: m, upstream: '{model}'}}]\n  api_key: AKIDEXAMPLE:{SECRET}:session\n"
            "  auth: {kind: access_key, scheme: aws, region: eu-central-1, service: bedrock}\n"
        )
        async with running(channel, tmp_path) as made:
            status, body = await call(made)
    assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, "Hello")
    assert provider.received[0].path == unquote(path)


async def test_the_program_is_run_again_once_for_a_token_that_is_rejected(tmp_path: Path) -> None:
    token, runs = tmp_path / "token", tmp_path / "runs"
    token.write_text("first-token")
    program = tmp_path / "print-token"
    script = f"open({str(runs)!r}, 'a').write('x'); print(open({str(token)!r}).read())"
    program.write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -c {shlex.quote(script)}\n")
    program.chmod(0o700)
    text = config("URL", "  auth: {kind: command, command: [./print-token], timeout: 60}\n")
    async with serve_provider(Verifying(name="cloud", scripts=[succeed], tokens={"first-token"})) as provider:
        parsed = parse(text.replace("URL", provider.url), str(tmp_path / "umg.yaml"), {})
        async with running(parsed, tmp_path / "data") as made:
            assert (await call(made))[0] == 200
            token.write_text("second-token")
            provider.tokens = {"second-token"}
            _age(made)
            assert (await call(made))[0] == 200
            assert runs.read_text() == "xx"
            provider.tokens = set()
            _age(made)
            status, body = await call(made)
            assert (status, runs.read_text()) == (502, "xxx")
            assert "second-token" not in body


def _age(made: Running) -> None:
    http = made.service._channels.text["a"]._channels["chat"]  # type: ignore[attr-defined]
    http._in_turn.endpoints[0].signer._made -= 60
