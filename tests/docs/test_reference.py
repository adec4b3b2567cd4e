"""Generated reference: everything in it has a description, and its tables have the values of the program."""

import re

import pytest

from scripts.reference import (
    commands,
    config_keys,
    error_reasons,
    http_operations,
    log_fields,
    metric_definitions,
    schema,
)
from scripts.reference.markdown import table
from umg_grpc.v1 import pb

KEYS = {key.path: key for key in config_keys.all_keys()}
COMMANDS = {command.name: command for command in commands.commands()}


def test_every_key_of_the_config_has_a_description() -> None:
    assert [path for path, key in KEYS.items() if not key.description] == []
    assert [section.path for section in config_keys.sections() if not section.description] == []
    assert len(KEYS) == len(config_keys.all_keys())


@pytest.mark.parametrize(
    ("path", "value", "default"),
    [
        ("channels", "mappings", "required"),
        ("channels[].timeout.idle", "number more than 0, at most 86,400", "`60`"),
        ("channels[].models[].id", "text", "required"),
        ("channels[].auth: {kind: header}.header", "text", "required"),
        ("models.ID.cache", "text", ""),
        ("body_limit", "size, e.g. `64MiB`", "`64MiB`"),
        ("usage.ttl", "duration, e.g. `12h`", "`90d`"),
        ("log.level", "`debug`, `info`, `warning`, `error`", "`info`"),
        ("shipped_prices", "`true` or `false`", "`true`"),
    ],
)
def test_a_key_has_its_kind_of_value_and_its_default(path: str, value: str, default: str) -> None:
    assert (KEYS[path].value, KEYS[path].default) == (value, default)


def test_descriptions_of_keys_have_the_words_of_the_file() -> None:
    assert KEYS["usage.ttl"].description.startswith("Time for which")
    assert KEYS["body_limit"].description == "Largest request body."
    assert [path for path, key in KEYS.items() if re.search(r"\bNone\b|NoAuth|[a-z]_[a-z]+\(", key.description)] == []


def test_every_command_and_every_option_has_a_description() -> None:
    assert [name for name, command in COMMANDS.items() if not command.description] == []
    options = [(command.name, option) for command in COMMANDS.values() for option in command.options]
    assert [(name, option.name) for name, option in options if not option.description] == []


def test_help_texts_name_no_constants_of_the_code() -> None:
    options = [option for command in COMMANDS.values() for option in command.options]
    texts = [*(option.name for option in options), *(option.description for option in options)]
    words = {word for text in texts for word in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", text)}
    assert {word for word in words if not word.startswith("UMG_")} == {"REQUEST_ID"}  # an argument


def test_a_command_has_its_arguments_and_flags() -> None:
    assert COMMANDS["umg check"].usage == "umg check [CONFIG] [OPTIONS]"
    assert COMMANDS["umg providers"].usage == "umg providers [NAME] [OPTIONS]"
    [http] = [option for option in COMMANDS["umg serve"].options if option.name.startswith("--http")]
    assert (http.name, http.default) == ("--http HOST:PORT", "`127.0.0.1:8080`")
    assert not [option for option in COMMANDS["umg serve"].options if "--metrics" in option.name]  # hidden


def test_every_definition_of_the_schema_has_a_comment() -> None:
    found = schema.schema()
    definitions = [*found.services, *found.messages, *found.enums]
    assert [each.name for each in definitions if not each.description] == []
    assert [(each.name, member.name) for each in definitions for member in each.members if not member.description] == []
    [service] = [each for each in found.services if each.name == "GenerationService"]
    [method] = [each for each in service.members if each.name == "StreamGenerate"]
    assert method.kind.endswith("→ stream of [`StreamGenerateResponse`](#streamgenerateresponse)")


def test_the_types_of_the_schema_lead_to_a_section() -> None:
    page = schema.page()
    linked = set(re.findall(r"\(#([^)]+)\)", page))
    assert linked <= {title.lower().replace(".", "") for title in re.findall(r"^### (.+)$", page, re.MULTILINE)}


def test_every_reason_has_a_description_and_its_statuses_once() -> None:
    reasons = error_reasons.reasons()
    assert [f"ERROR_REASON_{each.name}" for each in reasons] == [
        value.name for value in pb.ErrorReason.DESCRIPTOR.values
    ]
    assert [each.name for each in reasons if not each.description or each.description.endswith("HTTP 400.")] == []


def test_every_metric_has_a_description() -> None:
    metrics = {each.name: each for each in metric_definitions.definitions()}
    assert [name for name, each in metrics.items() if not each.description] == []
    assert metrics["umg_calls_total"].labels == ("method", "channel", "model", "outcome")
    assert (metrics["umg_call_seconds"].kind, metrics["umg_channel_state"].kind) == ("histogram", "gauge")


def test_every_operation_has_a_description() -> None:
    assert all(each.description for each in http_operations.operations())
    assert ("GET", "/v1beta/models/{model}") in {(each.method, each.path) for each in http_operations.operations()}


def test_every_field_of_the_log_of_calls_has_a_description() -> None:
    assert log_fields.written() == log_fields.MEANINGS.keys()


def test_a_cell_of_a_table_is_one_line_without_columns_of_its_own() -> None:
    assert table(("a",), [["x | y\n  z"]]).splitlines()[-1] == r"| x \| y z |"
