"""Clients that call a gateway by TLS, with an authority that the machine does not trust."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from umg_client import UmgError, connect, user, v1

from tests.support.certificates import CertificateFiles
from tests.support.gateways import SANDBOX, Running, running
from tests.world.clients.test_languages import output_of, skip_unless_available

pytestmark = pytest.mark.asyncio(loop_scope="module")
AUTHORITIES = {"go": "SSL_CERT_FILE", "typescript": "NODE_EXTRA_CA_CERTS"}
"""Variable with the file of a further authority, by language whose first answer is printed by TLS too."""
REQUEST = v1.GenerateRequest(model="famO-5", messages=[user("Hello")])


@dataclass(frozen=True)
class Secure:
    gateway: Running
    files: CertificateFiles


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def secure(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Secure]:
    folder = tmp_path_factory.mktemp("tls")
    files = CertificateFiles(folder / "tls")
    async with running(SANDBOX + files.config, folder / "data") as gateway:
        yield Secure(gateway, files)


async def test_python_trusts_the_authority_that_it_is_given(secure: Secure) -> None:
    trusted = secure.files.client_context()
    async with connect(secure.gateway.grpc, secure.gateway.key, secure=trusted) as client:
        assert (await client.generation.generate(REQUEST)).candidates
    async with connect(secure.gateway.grpc, secure.gateway.key, secure=True, retries=0) as client:
        with pytest.raises(UmgError) as caught:
            await client.generation.generate(REQUEST)
    assert caught.value.reason is v1.ErrorReason.UNAVAILABLE


@pytest.mark.parametrize("language", AUTHORITIES)
async def test_a_first_answer_is_printed_by_tls(language: str, secure: Secure) -> None:
    skip_unless_available(language)
    environment = {"UMG_ADDRESS": f"https://{secure.gateway.grpc}", "UMG_API_KEY": secure.gateway.key}
    trusted = {AUTHORITIES[language]: str(secure.files.folder / "ca.crt")}
    assert "You said: Say hello in five languages." in await output_of(language, environment | trusted, "hello")
    with pytest.raises(AssertionError, match=r"certificate|UNAVAILABLE"):
        await output_of(language, environment, "hello")
