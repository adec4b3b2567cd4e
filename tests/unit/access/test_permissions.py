"""Permissions: the models that a caller may use."""

import time
from dataclasses import dataclass, replace

import pytest
from google.protobuf.descriptor_pool import Default

from umg_grpc.access.account_levels import PROJECT_KIND, AccountLevel
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.key_permissions import ADMIN_SCOPE, EVERY_KEY, PERMITTED_OPERATIONS, required_scopes
from umg_grpc.base.errors import UmgError
from umg_grpc.process.service_factory import SERVICE_NAMES
from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import OPERATION_VALUES


def caller(*patterns: str) -> Caller:
    return Caller("key_1", "app", patterns, None, None)


@dataclass(frozen=True)
class Pattern:
    id: str
    patterns: tuple[str, ...]
    allows: tuple[str, ...]
    denies: tuple[str, ...]


PATTERNS = [
    Pattern("none at all", (), ("m", "", "a/b"), ()),
    Pattern("one id", ("m",), ("m",), ("M", "m2", "am", "", "m\n")),
    Pattern("several", ("m", "famG-*"), ("m", "famG-", "famG-2.5-pro"), ("famG", "n", "xfamG-1")),
    Pattern("a star alone", ("*",), ("m", "", "a/b", "a\nb"), ()),
    Pattern("a star before and after", ("*/llama-*",), ("x/llama-3", "a/b/llama-"), ("llama-3", "x/llama")),
    Pattern(
        "nothing else is a wildcard", ("a?[bc].d+",), ("a?[bc].d+",), ("axb.d+", "a?b.d+", "a?[bc]xd+", "a?[bc].dd")
    ),
    Pattern("brackets of all kinds", ("[!a]*]", "x|y"), ("[!a]]", "[!a]b]", "x|y"), ("b]", "x", "y")),
]


@pytest.mark.parametrize("case", PATTERNS, ids=lambda case: case.id)
def test_a_pattern_allows_the_ids_it_matches_as_a_whole(case: Pattern) -> None:
    subject = caller(*case.patterns)
    assert [model for model in case.allows + case.denies if subject.may_use(model)] == list(case.allows)


def test_a_denied_model_is_named() -> None:
    caller("m-*").check_model("m-1")
    with pytest.raises(UmgError, match="may not use the model `gpt-5`; its models are m-\\*") as caught:
        caller("m-*").check_model("gpt-5")
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_PERMISSION_DENIED, {"model": "gpt-5"})


def test_a_refusal_names_the_account_that_restricts() -> None:
    search = AccountLevel("acc_1", PROJECT_KIND, "search", model_patterns=("m-*",), operations=frozenset({"embed"}))
    below = replace(caller("m-1", "gpt-5"), levels=(search,))
    with pytest.raises(UmgError) as caught:
        below.check_model("gpt-5")
    message = "the project `search` of this API key may not use the model `gpt-5`; its models are m-1, gpt-5; of these "
    assert caught.value.message == message + "those that the project `search` allows (m-*)"
    with pytest.raises(UmgError, match=r"^this API key may not use the model `m-2`"):
        below.check_model("m-2")
    with pytest.raises(UmgError, match=r"^the project `search` of this API key may not use the operation `generate`"):
        below.check_scopes(frozenset({"generate"}))


def test_an_alias_is_allowed_by_its_own_name_and_by_its_model() -> None:
    for pattern, allowed in (("fast", True), ("gpt-*", True), ("f*", True), ("m", False)):
        assert caller(pattern).may_use("gpt-5", "fast") is allowed
    assert not caller("fast").may_use("gpt-5")
    caller("fast").check_model("gpt-5", "fast")
    with pytest.raises(UmgError, match="may not use the model `fast`") as caught:
        caller("m").check_model("gpt-5", "fast")
    assert caught.value.metadata == {"model": "fast"}


def test_a_long_id_cannot_make_a_pattern_slow() -> None:
    began = time.thread_time()
    assert not caller("a*" * 40 + "b").may_use("a" * 100_000)
    assert time.thread_time() - began < 1


def test_the_operations_of_keys_are_those_of_the_schema() -> None:
    assert PERMITTED_OPERATIONS.keys() == OPERATION_VALUES.keys()


def test_every_operation_of_a_model_belongs_to_one_operation_of_keys() -> None:
    permitted = sorted(operation for operations in PERMITTED_OPERATIONS.values() for operation in operations)
    assert permitted == [value for value in pb.ModelOperation.values() if value != pb.MODEL_OPERATION_UNSPECIFIED]


def test_a_key_without_operations_has_all_but_administration() -> None:
    assert caller().scopes == EVERY_KEY - {ADMIN_SCOPE}
    with pytest.raises(UmgError, match="may not administer") as caught:
        caller().check_scopes(frozenset({ADMIN_SCOPE}))
    assert caught.value.metadata == {"operation": "admin"}
    for method in ("AdminService/GetKey", "AccountService/GetAccount"):  # whose servicers check the role
        caller().check_scopes(required_scopes(f"/umg.v1.{method}"))


def test_only_methods_with_a_signature_need_no_key() -> None:
    methods = [
        f"/{service}/{method.name}"
        for service in SERVICE_NAMES
        for method in Default().FindServiceByName(service).methods
    ]
    assert {method.removeprefix("/umg.v1.") for method in methods if required_scopes(method) is None} == {
        "FileService/GetFile",
        "FileService/DownloadFile",
        "VideoService/ReceiveVideoCallback",
    }


def test_a_service_without_scopes_cannot_be_served() -> None:
    with pytest.raises(KeyError):
        required_scopes("/umg.v1.NewService/Do")
