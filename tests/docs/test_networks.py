"""Operators' page, section on networks: its variables are those of the code, and a test holds each row of its table."""

from collections.abc import Callable
from inspect import iscoroutinefunction, isfunction

import pytest

from tests.docs.tables import DOCS, quoted, rows, section
from tests.unit.cli import test_commands_behind_a_proxy as commands
from tests.unit.cli import test_proxy_report as report
from tests.unit.cli import test_serve as processes
from tests.unit.e2e import test_networks_behind_a_proxy as networks
from tests.unit.e2e import test_telemetry as telemetry
from tests.unit.store import test_blob_store as storage
from tests.unit.upstream import test_caller_url_fetch as urls
from tests.unit.upstream import test_command_tokens as tokens
from tests.unit.upstream import test_issuer_connections as issuers
from umg_grpc.base.proxy_rules import ALL_VARIABLE, CGI_VARIABLE, HTTP_VARIABLE, HTTPS_VARIABLE, NONE_VARIABLE
from umg_grpc.process.channel_file_checks import AUTHORITY_FILE, AUTHORITY_FOLDERS

PAGE = (DOCS / "operating.md").read_text(encoding="utf-8")
TEXT = " ".join(section(PAGE, "Networks").split())
BEHIND_THE_PROXY = networks.test_calls_of_providers_go_through_the_proxy_of_the_environment
ROWS: dict[str, Callable[..., object]] = {
    "calls of providers": BEHIND_THE_PROXY,
    "token servers": BEHIND_THE_PROXY,
    "issuers of": issuers.test_the_proxy_of_a_channel_is_used_for_issuers_with_tls,
    "files of providers at other hosts": networks.test_files_elsewhere_go_through_the_proxy_that_the_config_names,
    "URLs that callers name": urls.test_a_proxy_of_the_rules_serves_all_places_but_this_machine_and_those_without_one,
    "`blobs.url`": storage.test_storage_on_this_machine_has_no_proxy,
    "collector of OpenTelemetry": telemetry.test_a_collector_on_this_machine_has_no_proxy,
    "commands with `--gateway`": commands.test_urls_of_other_machines_are_read_through_the_proxy,
    "`command` of": tokens.test_the_program_has_the_environment_of_the_gateway,
    "PostgreSQL, Redis": processes.test_the_http_face_serves_in_a_process_of_its_own,
}
"""Begin of each row -> test of it."""


def test_each_row_of_the_table_has_a_test() -> None:
    found = [cells[0] for cells in rows(PAGE, "Networks")]
    assert [row.startswith(name) for row, name in zip(found, ROWS, strict=True)] == [True] * len(ROWS)
    assert all(isfunction(test) or iscoroutinefunction(test) for test in ROWS.values())


@pytest.mark.parametrize(
    "name",
    [HTTPS_VARIABLE, HTTP_VARIABLE, ALL_VARIABLE, NONE_VARIABLE, CGI_VARIABLE, AUTHORITY_FILE, AUTHORITY_FOLDERS],
)
def test_each_variable_of_the_code_is_described(name: str) -> None:
    assert name in quoted(TEXT)


def test_the_example_is_a_line_of_the_report() -> None:
    [example] = [text for text in quoted(TEXT) if text.startswith("proxy http://")]
    assert example == f"proxy {report.LINES[0]}".replace("main, other", "openai, anthropic")
