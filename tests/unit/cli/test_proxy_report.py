"""Proxies and certificate authorities as `umg check` and the start of a gateway report them."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.processes import run, serve
from umg_grpc.base.proxy_rules import EXPECTED_RULES
from umg_grpc.config import parse
from umg_grpc.process.channel_file_checks import AUTHORITY_FILE, AUTHORITY_FOLDERS, check_authorities
from umg_grpc.process.proxy_report import proxy_lines

CONFIG = """\
egress: {proxy: "http://caller:secret-word@out.example:8080"}
channels:
  - {name: sandbox, protocols: [sandbox], models: [famO-5]}
  - {name: main, protocols: [chat], base_url: "https://api.vendor.example/v1", models: [a]}
  - {name: here, protocols: [chat], base_url: "http://127.0.0.1:8000/v1", models: [b]}
  - {name: inside, protocols: [chat], base_url: "https://models.corp.example/v1", models: [c]}
  - {name: own, protocols: [chat], base_url: "https://b.example", proxy: "http://u:secret-word@own.example", models: [d]}
  - {name: other, protocols: [chat], base_url: "https://c.example", models: [e]}
"""
ENVIRONMENT = {
    "HTTPS_PROXY": "http://umg:secret-word@proxy.example:3128",
    "NO_PROXY": ".corp.example",
    "UMG_API_KEY": "sk-umg-of-the-proxy-report",
}
LINES = [
    "http://proxy.example:3128 (HTTPS_PROXY): main, other",
    "http://own.example (proxy of the channel): own",
    "http://out.example:8080 (egress.proxy): URLs of callers, result files, callbacks",
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "umg.yaml"
    file.write_text(CONFIG)
    return file


def test_each_proxy_is_reported_with_its_source_and_its_calls() -> None:
    assert proxy_lines(parse(CONFIG, "umg.yaml", ENVIRONMENT)) == LINES
    assert proxy_lines(parse(CONFIG.partition("\n")[2], "umg.yaml", {**ENVIRONMENT, "NO_PROXY": "*"})) == LINES[1:2]


def test_a_proxy_of_one_address_of_a_channel_is_reported() -> None:
    text = """
channels:
  - {name: both, protocols: [chat, messages], base_url: "https://models.corp.example/v1", models: [a],
     base_urls: {messages: "https://api.vendor.example"}}
"""
    assert proxy_lines(parse(text, "umg.yaml", ENVIRONMENT)) == ["http://proxy.example:3128 (HTTPS_PROXY): both"]


def test_of_many_channels_some_are_named() -> None:
    lines = [f"- {{name: c{n}, protocols: [chat], base_url: 'https://a.example', models: [m]}}" for n in range(11)]
    [line] = proxy_lines(parse("channels:\n" + "\n".join(lines), "umg.yaml", ENVIRONMENT))
    assert line.endswith(": c0, c1, c2, c3, c4, c5, c6, c7 and 3 more")


async def test_the_check_and_the_start_report_the_proxies(config: Path, tmp_path: Path) -> None:
    code, out, err = await run("check", str(config), environment=ENVIRONMENT)
    assert (code, err) == (0, "")
    assert [line for line in out.splitlines() if "proxy" in line] == [f"{config}: proxy {line}" for line in LINES]
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served:
        assert [line.strip() for line in served.lines if "  proxy " in line] == [f"proxy   {line}" for line in LINES]
        assert "secret-word" not in "\n".join([*served.lines, *served.log])


@dataclass(frozen=True)
class Unusable:
    """Environment with which nothing starts, and the end of the message."""

    id: str
    name: str
    value: str
    message: str


UNUSABLE = [
    Unusable(
        "a proxy that is none", "HTTPS_PROXY", "socks5://me:secret-word@a:1", f"HTTPS_PROXY to be {EXPECTED_RULES}"
    ),
    Unusable("no file of authorities", AUTHORITY_FILE, "/no/ca.pem", "SSL_CERT_FILE /no/ca.pem: No such file"),
]


@pytest.mark.parametrize("case", UNUSABLE, ids=lambda case: case.id)
async def test_an_unusable_variable_is_named_by_the_check_and_the_start(case: Unusable, config: Path) -> None:
    environment, data = {case.name: case.value}, str(config.parent / "data")
    code, _, checked = await run("check", str(config), environment=environment)
    assert code == 2
    code, _, started = await run("serve", "--config", str(config), "--data", data, environment=environment)
    assert code in {1, 2}
    for text in (checked, started):
        assert case.message in text
        assert "secret-word" not in text


def test_files_and_folders_of_authorities_are_checked(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("no certificate")
    with pytest.raises(OSError, match=r"SSL_CERT_FILE .*empty\.pem: "):
        check_authorities({AUTHORITY_FILE: str(tmp_path / "empty.pem")})
    with pytest.raises(OSError, match="SSL_CERT_DIR /no/a:/no/b: no such directory"):
        check_authorities({AUTHORITY_FOLDERS: "/no/a:/no/b"})
    usual = ssl.get_default_verify_paths()
    check_authorities({AUTHORITY_FILE: usual.cafile or "", AUTHORITY_FOLDERS: f"/no/a:{tmp_path}"})
    check_authorities({})
