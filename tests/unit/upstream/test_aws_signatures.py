"""Signatures of AWS, against the vendor's published vectors and its own Python library."""

from datetime import UTC, datetime
from hashlib import sha256

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from yarl import URL

from tests.support.providers.raw import PATIENT
from umg_grpc.upstream.http.signing.aws import AwsSigner
from umg_grpc.upstream.http1.request import OutgoingRequest

NOW = datetime.now(UTC).replace(microsecond=0)
KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
EMPTY = sha256(b"").hexdigest()
URLS = [
    "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-x%3A0/invoke",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.amazon.nova-pro-v1:0/converse",
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fus.x:0/converse",
    "https://bedrock.example:8443/a%20b/c?b=2&a=~x&a=&empty=",
    "http://127.0.0.1:9000/",
]


@pytest.mark.parametrize(
    ("method", "url", "signature"),
    [
        ("GET", "https://example.amazonaws.com/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", "https://example.amazonaws.com/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "https://example.amazonaws.com/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
    ],
    ids=["get-vanilla", "post-vanilla", "get-vanilla-query-order-key-case"],
)
def test_the_signature_is_that_of_the_published_vector(method: str, url: str, signature: str) -> None:
    signer = AwsSigner(KEY, SECRET, region="us-east-1", service="service")
    headers = {"host": "example.amazonaws.com", "x-amz-date": "20150830T123600Z"}
    assert signer.authorization(method, url, headers, EMPTY) == (
        f"AWS4-HMAC-SHA256 Credential={KEY}/20150830/us-east-1/service/aws4_request, "
        f"SignedHeaders=host;x-amz-date, Signature={signature}"
    )


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("session_token", ["", "a-session+token=="])
async def test_the_signature_is_that_of_the_library_of_the_vendor(url: str, session_token: str) -> None:
    body = b'{"model":"m"}'
    signer = AwsSigner(KEY, SECRET, session_token, region="eu-west-1", service="bedrock", now=lambda: NOW)
    signed = await signer.headers(OutgoingRequest(url, {"Content-Type": "application/json"}, body, PATIENT))
    assert _expected(url, body, session_token, signed["X-Amz-Date"]) == signed["Authorization"]
    assert SECRET not in str(signed)
    assert signed.get("X-Amz-Security-Token", "") == session_token


def _expected(url: str, body: bytes, session_token: str, time: str) -> str:
    """Return the header that the library makes for the request at that time."""
    headers = {"content-type": "application/json", "x-amz-content-sha256": sha256(body).hexdigest()}
    request = AWSRequest("POST", str(URL(url)), headers, body)  # as the client sends it
    if session_token:
        request.headers["X-Amz-Security-Token"] = session_token
    request.context["timestamp"] = time
    request.headers["X-Amz-Date"] = time
    auth = SigV4Auth(Credentials(KEY, SECRET, session_token or None), "bedrock", "eu-west-1")
    canonical = auth.canonical_request(request)
    return auth._inject_signature_to_request(
        request, auth.signature(auth.string_to_sign(request, canonical), request)
    ).headers["Authorization"]
