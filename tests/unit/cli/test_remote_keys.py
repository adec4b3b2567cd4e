"""Commands of `umg keys` on the database and at a gateway: the same output, and errors that name the remedy."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.certificates import CertificateFiles
from tests.support.forked_umg_starts import start
from tests.support.gateways import KEY, SANDBOX, Running, running
from tests.support.processes import run
from tests.support.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECONDS = 60


@dataclass(frozen=True)
class Source:
    """Database or gateway, by the flags and variables of a command."""

    flags: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)

    async def keys(self, *arguments: str) -> str:
        code, out, err = await run("keys", *arguments, *self.flags, environment=self.environment)
        assert (code, err) == (0, ""), err
        return out

    async def fields(self, key: str) -> dict[str, str]:
        return fields_of(await self.keys("show", key))


def fields_of(shown: str) -> dict[str, str]:
    return {line[:13].strip(): line[13:] for line in shown.splitlines()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Running, Path], None]:
    data = tmp_path_factory.mktemp("remote")
    (data / "umg.yaml").write_text(SANDBOX)
    (data / "admin.key").write_text(f"{KEY}\n")
    async with running(SANDBOX, data) as found:
        yield found, data


@pytest_asyncio.fixture(params=["database", "gateway"], loop_scope="module")
async def source(gateway: tuple[Running, Path], request: pytest.FixtureRequest) -> Source:
    running_, data = gateway
    if request.param == "database":
        return Source(("--config", str(data / "umg.yaml"), "--data", str(data)))
    return Source(("--api-key-file", str(data / "admin.key")), {"UMG_GATEWAY": f"{running_.url}/"})


async def test_a_key_is_created_changed_rotated_and_revoked(source: Source) -> None:
    out = await source.keys(
        "create", "app one", "--models", "famG-*", "--rpm", "7", "--tag", "a=1", "--expires", "2099-01-01"
    )
    secret = out.splitlines()[-1]
    assert secret.startswith("sk-umg-")
    shown = await source.fields("app one")
    assert (shown["models"], shown["rpm"], shown["tags"], shown["expires"]) == (
        "famG-*",
        "7",
        "a=1",
        "2099-01-01T00:00:00Z",
    )
    flags = (
        "--name",
        "app/2",
        "--models",
        "*",
        "--channels",
        "sandbox",
        "--rpm",
        "none",
        "--tpm",
        "900",
        "--concurrency",
        "3",
        "--budget",
        "999999999.5",
    )
    more = (
        "--budget-period",
        "day",
        "--expires",
        "none",
        "--owner",
        "search",
        "--tag",
        "b=2",
        "--tag",
        "a=",
        "--admin",
        "--operations",
        "embed",
    )
    changed = fields_of(await source.keys("update", "app one", *flags, *more))
    assert changed == await source.fields("app/2")
    expected = {
        "models": "all",
        "channels": "sandbox",
        "rpm": "no limit",
        "tpm": "900",
        "concurrency": "3",
        "expires": "never",
        "owner": "search",
        "tags": "b=2",
        "operations": "embed, admin",
        "budget": "999999999.500000 credits a day",
        "spent": "0.000000 credits",
    }
    assert {name: changed[name] for name in expected} == expected
    again = fields_of(await source.keys("update", shown["id"], "--budget", "none", "--no-admin", "--operations", "*"))
    assert (again["budget"], again["operations"], again["tpm"], again["owner"]) == ("no limit", "all", "900", "search")
    rotated = (await source.keys("rotate", "app/2", "--overlap", "0")).splitlines()[-1]
    assert rotated.startswith("sk-umg-")
    assert rotated != secret
    assert "revoked" in await source.keys("revoke", "app/2")
    listed = await source.keys("list")
    assert listed.splitlines()[1].split()[1] == "bootstrap"  # the oldest first
    assert (shown["id"] in listed, secret in listed) == (True, False)


@dataclass(frozen=True)
class Failure:
    id: str
    flags: tuple[str, ...]
    expected_parts: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=lambda: {"UMG_ADMIN_KEY": KEY})
    arguments: tuple[str, ...] = ("keys", "list")


FAILURES = [
    Failure("no key", ("--gateway", "{url}"), ("--gateway needs the key of an administrator", "UMG_ADMIN_KEY"), {}),
    Failure("an unknown key", ("--gateway", "{url}"), ("does not accept the key", "correct UMG_ADMIN_KEY"), {"UMG_ADMIN_KEY": "sk-umg-unknown"}),
    Failure("a key of a caller", ("--gateway", "{url}"), ("may not administer", "umg keys create --admin"), {"UMG_ADMIN_KEY": "{plain}"}, ("keys", "create", "another")),
    Failure("a key that is no text", ("--gateway", "{url}"), ("visible ASCII characters only",), {"UMG_ADMIN_KEY": "schlüssel"}),
    Failure("no such file", ("--gateway", "{url}", "--api-key-file", "nowhere"), ("--api-key-file: nowhere cannot be read",)),
    Failure("nobody there", ("--gateway", "http://127.0.0.1:1"), ("cannot be reached", "check --gateway")),
    Failure("no URL", ("--gateway", "gateway.example:8080"), ("is no URL, such as",)),
    Failure("a broken URL", ("--gateway", "http://[::1"), ("is no URL, such as",)),
    Failure("a URL with credentials", ("--gateway", "http://user:pw@127.0.0.1:1"), ("in the URL are not accepted", "set the key by UMG_ADMIN_KEY")),
    Failure("no name of a domain", ("--gateway", "http://a..b"), ("cannot be reached", "check --gateway")),
    Failure("a path that is not ASCII", ("--gateway", "{page}/jsön"), ("text/html instead of JSON", "set --gateway")),
    Failure("a web page", ("--gateway", "{page}"), ("text/html instead of JSON", "set --gateway")),
    Failure("another JSON", ("--gateway", "{page}/json"), ("status 404", "set --gateway")),
    Failure("an unreadable answer", ("--gateway", "{page}/odd"), ("cannot be read",)),
    Failure("an unknown reference", ("--gateway", "{url}"), ("there is no such key",), arguments=("keys", "show", "none")),
    Failure("a malformed setting", ("--gateway", "{url}"), ("the name of a tag has",), arguments=("keys", "create", "x", "--tag", "a b=c")),
]  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sources(gateway: tuple[Running, Path]) -> AsyncGenerator[dict[str, str], None]:
    """Yield addresses and keys by their names in the cases."""
    running_, data = gateway
    code, out, _ = await run("keys", "create", "plain", "--data", str(data))
    assert code == 0

    async def answer(request: web.Request) -> web.Response:
        if request.path.startswith("/json"):
            return web.json_response({"detail": "not found"}, status=404)
        if request.path.startswith("/odd"):
            return web.json_response({"keys": 7})
        if request.path.startswith("/newer"):
            key = {"keyId": "key_new", "settings": {"name": "app", "budgetPeriod": "BUDGET_PERIOD_WEEK"}, "colour": 1}
            return web.json_response({"keys": [key], "pages": 1})
        return web.Response(text="<html>Welcome</html>", content_type="text/html")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with serving(app) as page:
        yield {"url": running_.url, "page": page, "plain": out.splitlines()[-1]}


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
async def test_a_failure_names_the_remedy(case: Failure, sources: dict[str, str]) -> None:
    flags = [flag.format(**sources) for flag in case.flags]
    environment = {name: value.format(**sources) for name, value in case.environment.items()}
    code, out, err = await run(*case.arguments, *flags, environment={"UMG_ADMIN_KEY": "", **environment})
    assert (code, out) == (1, ""), err
    assert all(part in err for part in case.expected_parts), err
    assert "Traceback" not in err
    assert KEY not in err


async def test_members_and_values_of_a_newer_gateway_are_ignored(sources: dict[str, str]) -> None:
    flags = ("--gateway", f"{sources['page']}/newer")
    code, out, err = await run("keys", "list", *flags, environment={"UMG_ADMIN_KEY": KEY})
    assert (code, "key_new" in out) == (0, True), err


BAD_FLAGS = [
    pytest.param((), "name at least one setting", id="no change"),
    pytest.param(("--rpm", "0"), "--rpm", id="a limit of nothing"),
    pytest.param(("--budget", "much"), "--budget", id="a budget that is no number"),
    pytest.param(("--budget-period", "week"), "--budget-period", id="an unknown period"),
    pytest.param(("--expires", "soon"), "--expires", id="no time"),
    pytest.param(("--models", ","), "--models", id="no pattern"),
]


@pytest.mark.parametrize(("flags", "named"), BAD_FLAGS)
async def test_a_bad_change_is_refused_by_its_flag(flags: tuple[str, ...], named: str) -> None:
    code, out, err = await run("keys", "update", "app", *flags)
    assert (code, out) == (2, "")
    assert named in err


async def test_a_certificate_of_an_authority_of_its_own_is_accepted_by_its_file(tmp_path: Path) -> None:
    files = CertificateFiles(tmp_path / "tls")
    async with running(SANDBOX + files.config, tmp_path) as secure:
        arguments = ("keys", "list", "--gateway", secure.url)
        code, _, err = await run(*arguments, environment={"UMG_ADMIN_KEY": KEY, "SSL_CERT_FILE": ""})
        assert (code, "SSL_CERT_FILE" in err, "Traceback" in err) == (1, True, False), err
        authority = str(files.folder / "ca.crt")
        code, out, err = await run(*arguments, environment={"UMG_ADMIN_KEY": KEY, "SSL_CERT_FILE": authority})
        assert (code, "bootstrap" in out) == (0, True), err


async def test_ctrl_c_does_not_wait_for_a_gateway_that_does_not_answer() -> None:
    called, closed, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        await closed.wait()
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    process = await start(("keys", "list", "--gateway", url), {**os.environ, "UMG_ADMIN_KEY": KEY})
    async with asyncio.timeout(SECONDS):
        await called.wait()
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    closed.set()
    server.close()
    await left.wait()


REMOTE = """
import os
import signal
import sys
import umg_grpc.cli.key_command_actions, umg_grpc.cli.http_admin_client
assert "sqlalchemy" not in sys.modules
"""


async def test_commands_at_a_gateway_do_not_load_the_database() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", REMOTE)
    assert await process.wait() == 0
