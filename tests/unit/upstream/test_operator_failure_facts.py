"""Facts of failed calls for operators: address, answer and the end of the key, and no secret."""

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http.channel_secrets import ChannelSecrets
from umg_grpc.upstream.http.operator_failure_facts import add_facts
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.provider_errors import decode_error
from umg_grpc.wire.errors.secret_masking import SecretMask

KEY = "opaque+key/0123456789wxyz"
BASE = "https://me:hidden-word@provider.example:8443/v1?token=hidden"
NO_SECRETS = SecretMask(())


def facts_of(error: UmgError, endpoint: ProviderEndpoint, **answer: object) -> ProviderFailure:
    headers = {str(name): str(value) for name, value in answer.items()}
    add_facts(error, endpoint, ChannelSecrets([endpoint]).mask, "/chat/completions", 401 if headers else 0, headers)
    assert error.facts is not None
    return error.facts


def test_the_facts_name_the_address_without_credentials_and_the_end_of_the_key() -> None:
    endpoint = ProviderEndpoint("https://me:hidden-word@provider.example:8443/v1", {}, KEY)
    facts = facts_of(
        decode_error(401, {}, b'{"error": {"message": "no", "code": "bad_key"}}'),
        endpoint,
        **{"x-request-id": "req_7", "content-type": "text/plain; x=y"},
    )
    assert facts == ProviderFailure(
        kind=FailureKind.WRONG_KEY,
        status=401,
        code="bad_key",
        message="no",
        request_id="req_7",
        host="provider.example:8443",
        path="/v1/chat/completions",
        content_type="text/plain",
        key_tail="wxyz",
    )  # fmt: skip


def test_a_key_is_masked_where_the_provider_repeats_it() -> None:
    body = f'{{"error": {{"message": "the key {KEY} and the header s3cret+word are wrong {"x" * 400}"}}}}'
    for endpoint in (
        ProviderEndpoint(BASE, {"x-other": "s3cret+word"}, KEY),
        ProviderEndpoint(BASE, {"x-other": "s3cret+word", "authorization": f"Bearer {KEY}"}, key_in_headers=KEY),
    ):
        facts = facts_of(decode_error(401, {}, body.encode()), endpoint)
        assert facts.message.startswith("the key [key] and the header [key] are wrong")
        assert len(facts.message) == 300
        assert facts.key_tail == "wxyz"
        assert not any(secret in repr(facts) for secret in (KEY, KEY[:-4], "s3cret", "hidden"))


def test_a_key_is_masked_in_the_code_the_request_id_and_the_error_of_the_caller() -> None:
    body = f'{{"error": {{"message": "no {KEY}", "code": "{KEY}"}}}}'
    error = decode_error(400, {}, body.encode())
    facts = facts_of(error, ProviderEndpoint(BASE, {}, KEY), **{"x-request-id": KEY})
    assert (facts.code, facts.request_id, facts.message) == ("[key]", "[key]", "no [key]")
    assert KEY not in f"{error.message} {error.metadata}"


def test_a_short_key_has_no_visible_end() -> None:
    assert facts_of(decode_error(401, {}, b"{}"), ProviderEndpoint(BASE, {}, "short-key")).key_tail == ""


def test_a_malformed_request_id_and_media_type_are_left_out() -> None:
    headers = {"request-id": "two words", "content-type": "te xt/<b>"}
    facts = facts_of(decode_error(401, {}, b"{}"), ProviderEndpoint(BASE, {}, KEY), **headers)
    assert (facts.request_id, facts.content_type) == ("", "")


def test_the_callers_own_deadline_is_no_failure_of_the_provider() -> None:
    error = UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, "the call's own deadline is over")
    add_facts(error, ProviderEndpoint(BASE, {}, KEY), NO_SECRETS, "/x")
    assert error.facts is None
    late = UmgError(pb.ERROR_REASON_UPSTREAM_TIMEOUT, "the provider was too slow").with_failure(Failure.AMBIGUOUS)
    add_facts(late, ProviderEndpoint(BASE, {}, KEY), NO_SECRETS, "/x")
    assert late.facts is not None
    assert late.facts.kind is FailureKind.SLOW


def test_the_facts_have_the_address_that_is_probably_meant() -> None:
    body = b'{"error": {"message": "Invalid URL (POST /v1/v1/chat/completions)"}}'
    for written, meant in (("https://a.example/v1/v1", "https://a.example/v1"), ("https://a.example/v1", "")):
        error = decode_error(404, {}, body)
        facts = facts_of(error, ProviderEndpoint(written, {}, KEY), **{"content-type": "application/json"})
        assert (facts.kind, facts.right_base_url) == (FailureKind.WRONG_ADDRESS, meant)
        assert "a.example" not in error.message
