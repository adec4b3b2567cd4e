"""Tokens that a program prints: their forms, and the bounds of its runs."""

import base64
import json
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.support.providers.raw import PATIENT, failed
from umg_grpc.base.errors import Failure
from umg_grpc.upstream.http.signing.token_command import RETRY_SECONDS, CommandSigner, token_in
from umg_grpc.upstream.http1.request import OutgoingRequest

NOW = 1_767_323_645.0
OUTGOING = OutgoingRequest("http://a/", {}, b"", PATIENT)


def jwt(**claims: object) -> str:
    parts = ({"alg": "none"}, claims)
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), ""])


def signer(*command: str, now: list[float] | None = None, timeout_seconds: float = 30, **options: str) -> CommandSigner:
    clock = now or [NOW]
    return CommandSigner(command, ttl=300, timeout_seconds=timeout_seconds, now=lambda: clock[0], **options)


@pytest.mark.parametrize(
    ("output", "token", "seconds"),
    [
        ("ya29.token\n", "ya29.token", 300),
        ('{"access_token": "t", "expires_in": 3600}', "t", 3300),
        ('{"accessToken": "t", "expires_on": "1767327245"}', "t", 3300),
        ('{"token": "t", "expiration": "2026-01-02T03:24:05Z"}', "t", 300),
        (
            '{"kind": "ExecCredential", "status": {"token": "t", "expirationTimestamp": "2026-01-02T03:24:05"}}',
            "t",
            300,
        ),
        ('{"token": "t"}', "t", 300),
        (jwt(exp=NOW + 100), jwt(exp=NOW + 100), 50),
        (jwt(sub="a"), jwt(sub="a"), 300),
    ],
)
def test_a_token_serves_until_shortly_before_its_end(output: str, token: str, seconds: float) -> None:
    assert token_in(output.encode(), NOW, 300) == (token, seconds)


@pytest.mark.parametrize(
    "output", ["", "two words", "\u00e9", "{", "{}", '{"token": 1}', '{"token": "t", "expires_in": 0}', "a\nb"]
)
def test_an_output_without_a_token_is_refused(output: str) -> None:
    assert token_in(output.encode(), NOW, 300) is None


async def test_the_program_runs_without_a_shell_once_until_the_token_ends(tmp_path: Path) -> None:
    runs, now = tmp_path / "runs", [NOW]
    script = f"import sys; open({str(runs)!r}, 'a').write('x'); print(sys.argv[1])"
    made = signer(sys.executable, "-c", script, "$HOME;id", now=now)
    assert await made.headers(OUTGOING) == await made.headers(OUTGOING) == {"Authorization": "Bearer $HOME;id"}
    now[0] += 300
    await made.headers(OUTGOING)
    assert runs.read_text() == "xx"


async def test_the_program_has_the_environment_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    made = signer(sys.executable, "-c", "import os; print(os.environ['HTTPS_PROXY'])")
    assert await made.headers(OUTGOING) == {"Authorization": "Bearer http://proxy.example"}


async def test_the_token_is_sent_bare_in_a_header_of_its_own() -> None:
    made = signer(sys.executable, "-c", "print('t')", header="x-api-key")
    assert await made.headers(OUTGOING) == {"x-api-key": "t"}


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("/absent/program",), "cannot be run: No such file or directory"),
        ((sys.executable, "-c", "import sys; sys.exit('password=hunter22 is wrong')"), "exit code 1"),
        ((sys.executable, "-c", "print()"), "printed no token"),
        ((sys.executable, "-c", "import time; time.sleep(60)"), "printed no token within 0.2 s"),
    ],
    ids=["no program", "exit code", "no output", "too long"],
)
async def test_a_run_without_a_token_is_for_the_log_alone(command: tuple[str, ...], reason: str) -> None:
    is_slow = "sleep" in command[-1]
    now = [NOW]
    made = signer(*command, now=now, timeout_seconds=0.2 if is_slow else 30)
    with capture_logs() as logs:
        error = await failed(made.headers(OUTGOING))
        assert error.message == "the provider's token could not be got; the operator has to check the channel"
        assert (error.failure, error.cause) == (Failure.NOT_SENT, f"auth.command: {reason}")
        await failed(made.headers(OUTGOING))  # without another run
        assert [line["reason"] for line in logs] == [reason]
        now[0] += RETRY_SECONDS
        await failed(made.headers(OUTGOING))
    assert len(logs) == 2
    assert "hunter22" not in str(logs) + error.message


async def test_output_without_end_is_bounded() -> None:
    made = signer(sys.executable, "-c", "print('x' * 10_000_000)")
    assert len((await made.headers(OUTGOING))["Authorization"]) < 100_000
