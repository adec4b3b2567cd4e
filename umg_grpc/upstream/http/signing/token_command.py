"""Tokens that a configured program prints: either bare, or in JSON with the time at which they expire."""

import asyncio
import base64
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
import structlog

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http.signing.cached_token import CachedTokenSigner, Token, seconds_of_use
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.v1 import pb
from umg_grpc.wire.errors.error_message_redaction import clean

MAX_OUTPUT_BYTES = 64 * 1024
RETRY_SECONDS = 5.0
"""Seconds after a failed run in which the program is not run again."""
TOKEN_NAMES = ("access_token", "accessToken", "token", "id_token")
"""Members of JSON output that may contain the token, in order: names of OAuth and of cloud vendors' command lines."""
SECONDS_NAMES = ("expires_in", "expiresIn")
END_NAMES = ("expires_on", "expires_at", "expirationTimestamp", "expiration", "expiry")
"""Members of JSON output that may contain the expiry of the token, in Unix seconds or as an ISO 8601 time."""

logger = structlog.get_logger()


class CommandSigner(CachedTokenSigner):
    """Signer that sends tokens printed by a program which the operator configures."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        ttl: float,
        timeout_seconds: float,
        header: str | None = None,
        channel: str = "",
        now: Callable[[], float] = time.time,
    ) -> None:
        """Create a signer that runs `command` (program and arguments) for at most `timeout_seconds`. `ttl`: seconds of
        use of a token without a stated expiry; `header`: for the bare token, None for `Authorization: Bearer`;
        `channel`: for the log.
        """
        super().__init__(now)
        self._command = tuple(command)
        self._ttl = ttl
        self._timeout = timeout_seconds
        self._header = header
        self._channel = channel
        self._reason = ""  # of the last run, if it failed
        self._failed_at = 0.0

    def header(self, token: str) -> Mapping[str, str]:
        return super().header(token) if self._header is None else {self._header: token}

    async def new_token(self, deadlines: Deadlines) -> Token:
        if self._reason and self._now() - self._failed_at < RETRY_SECONDS:
            raise _no_token(self._reason)
        self._reason = ""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,  # so that its own children end with it
            )
        except OSError as error:
            raise self._failed(f"cannot be run: {error.strerror}") from None
        try:
            async with asyncio.timeout(min(self._timeout, deadlines.total)):
                output, problems = await asyncio.gather(_read(process.stdout), _read(process.stderr))
                code = await process.wait()
        except TimeoutError:
            raise self._failed(f"printed no token within {self._timeout:g} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if code != 0:
            raise self._failed(f"exit code {code}", problems)
        if (token := token_in(output, self._now(), self._ttl)) is None:
            raise self._failed("printed no token", problems)
        return token

    def _failed(self, reason: str, problems: bytes = b"") -> UmgError:
        """Log a run without a token, and return its error."""
        printed = clean(problems.decode("utf-8", "replace"))
        logger.warning(
            "the command of a channel made no token", channel=self._channel, reason=reason, stderr=printed or None
        )
        self._reason, self._failed_at = reason, self._now()
        return _no_token(reason)


def _no_token(reason: str) -> UmgError:
    message = "the provider's token could not be got; the operator has to check the channel"
    error = UmgError(pb.ERROR_REASON_UPSTREAM_UNREACHABLE, message)
    facts = ProviderFailure(FailureKind.WRONG_KEY, message=f"auth.command: {reason}")
    return error.with_failure(Failure.NOT_SENT, f"auth.command: {reason}").with_facts(facts)


def find_program(command: Sequence[str]) -> None:
    """Raise OSError if the program of a command does not exist or is not executable."""
    if shutil.which(command[0]) is None:
        raise OSError(f"{command[0]} is no program that can be run here")


def token_in(output: bytes, now: float, ttl: float) -> Token | None:
    """Return the token in a program's output, bare or in JSON, or None. `ttl`: its seconds of use if not stated."""
    text = output.decode("utf-8", "replace").strip()
    end: float | None = None
    if text.startswith("{"):
        try:
            fields = msgspec.json.decode(text, type=dict[str, object])
        except ValueError:
            return None
        status = fields.get("status")
        fields = status if isinstance(status, dict) else fields  # an ExecCredential of Kubernetes
        text = next((value for name in TOKEN_NAMES if isinstance(value := fields.get(name), str)), "")
        end = _end(fields, now)
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        return None
    end = end if end is not None else _jwt_end(text)
    if end is None:
        return Token(text, ttl)
    return Token(text, seconds_of_use(end - now)) if end > now else None


def _end(fields: Mapping[str, object], now: float) -> float | None:
    for name in SECONDS_NAMES:
        if (seconds := _number(fields.get(name))) is not None:
            return now + seconds
    return next((end for name in END_NAMES if (end := _time(fields.get(name))) is not None), None)


def _number(value: object) -> float | None:
    try:
        return float(value) if isinstance(value, int | float | str) else None
    except ValueError:
        return None


def _time(value: object) -> float | None:
    if (seconds := _number(value)) is not None or not isinstance(value, str):
        return seconds
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def _jwt_end(token: str) -> float | None:
    """Return a JSON web token's Unix time of expiry, without verifying it; None for a token of another kind."""
    parts = token.split(".")
    if len(parts) != 3 or not token.startswith("ey"):
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="), type=dict[str, object])
    except ValueError:
        return None
    return _number(claims.get("exp"))


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    """Return the first MAX_OUTPUT_BYTES of a program's output; read and ignore the rest, so that it ends."""
    kept = b""
    while stream is not None and (chunk := await stream.read(MAX_OUTPUT_BYTES)):
        kept += chunk[: MAX_OUTPUT_BYTES - len(kept)]
    return kept
