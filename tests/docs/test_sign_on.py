"""The page of sign-on names the methods that accept sessions, as the table of permissions has them."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor_pool import Default

from umg_grpc.access.key_permissions import SESSION_SCOPES, required_scopes
from umg_grpc.process.service_factory import SERVICE_NAMES

PAGE = Path(__file__).parents[2] / "docs" / "sign-on.md"
LIST = re.compile(r"(?<=<!-- sessions -->\n).*?(?=<!-- end -->)", re.DOTALL)


def accepting_sessions() -> str:
    """Return the services and their methods that accept sessions, as the page has them."""
    lines = []
    for service in SERVICE_NAMES:
        methods = [method.name for method in Default().FindServiceByName(service).methods]
        accepting = [
            f"`{name}`"
            for name in methods
            if not SESSION_SCOPES.isdisjoint(required_scopes(f"/{service}/{name}") or frozenset())
        ]
        if accepting:
            lines.append(f"- `{service.rpartition('.')[2]}`: {', '.join(accepting)}\n")
    return "\n" + "".join(lines) + "\n"


def test_the_page_lists_the_methods_that_accept_sessions(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    if request.config.getoption("--record"):
        PAGE.write_text(LIST.sub(lambda _: accepting_sessions(), text))
    assert LIST.findall(PAGE.read_text()) == [accepting_sessions()]
