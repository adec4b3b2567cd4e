"""Files of `deploy/`: they name existing files and valid configs, and are checked by the tools that are installed."""

import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml

from tests.docs.deploy.kubernetes_schemas import KUBERNETES, LOCATION
from umg_grpc.config import parse

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm"
SECRETS = {
    "UMG_API_KEY": "sk-umg-first-secret-of-the-tests",
    "UMG_SECRET": "a-secret-of-the-tests",
    "UMG_DATABASE": "postgresql://umg@postgres/umg",
    "UMG_REDIS": "redis://redis:6379/0",
}
VARIABLE = re.compile(r"\$\{([A-Z_]+)")
MAX_EXPOSURE = 2.0
"""Highest exposure level of the unit by `systemd-analyze security`, from 0 (no access) to 10."""

Yaml: TypeAlias = dict[str, dict[str, dict[str, object]]]


def tool(name: str) -> str:
    """Return the path of a program. Skip the test without it."""
    folders = os.pathsep.join(
        [os.environ["PATH"], sysconfig.get_path("scripts"), "/usr/sbin", os.environ.get("UMG_DEPLOY_TOOLS", "")]
    )
    if (found := shutil.which(name, path=folders)) is None:
        pytest.skip(f"{name} is not installed (`make deploycheck` installs helm and kubeconform)")
    return found


def run(*command: str | Path, text: str | None = None, environment: Mapping[str, str] | None = None) -> str:
    """Run a program. Return its output, which has to succeed."""
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, cwd=ROOT, check=False, env=variables
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def compose() -> Yaml:
    found: Yaml = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.y*ml")), ids=lambda path: path.name)
def test_a_file_is_yaml(path: Path) -> None:
    if path.parent.name != "templates":  # of Helm, rendered below
        assert yaml.safe_load(path.read_text()) is not None


def test_the_configs_are_valid() -> None:
    chart = yaml.safe_load((CHART / "values.yaml").read_text())["config"]
    for text in ((DEPLOY / "config.yaml").read_text(), yaml.safe_dump(chart)):
        config = parse(text, "config.yaml", SECRETS)
        assert config.database == SECRETS["UMG_DATABASE"]
        assert config.secret == SECRETS["UMG_SECRET"]
        assert config.metrics.address is not None


def test_compose_mounts_files_that_exist_and_reads_variables_of_the_example() -> None:
    text = (DEPLOY / "compose.yaml").read_text()
    given = {line.partition("=")[0] for line in (DEPLOY / "compose.env.example").read_text().splitlines()}
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    assert set(VARIABLE.findall(code)) - {"UMG_IMAGE"} <= given
    services = compose()["services"]
    for name, service in services.items():
        depends = service.get("depends_on", [])
        assert set(depends if isinstance(depends, list | dict) else ()) <= services.keys(), name
        mounts = service.get("volumes", [])
        assert isinstance(mounts, list)
        for mount in mounts:
            source = str(mount).partition(":")[0]
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose()["volumes"], mount


def test_compose_is_valid_for_docker() -> None:
    docker = tool("docker")
    if subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker has no plugin compose")
    names = [line.partition("=")[0] for line in (DEPLOY / "compose.env.example").read_text().splitlines()]
    variables = {name: "a-value-of-the-tests" for name in names if VARIABLE.match(f"${{{name}")}
    run(docker, "compose", "-f", DEPLOY / "compose.yaml", "config", "--quiet", environment=variables)


def test_the_image_is_built_from_files_that_the_builder_gets() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = [part for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for part in line.split()[:-1]]
    assert copied
    for part in copied:
        assert (ROOT / part).exists(), part
        assert any(part == line or fnmatch(part, f"{line}/*") for line in allowed), part
    commands = (ROOT / "docs/releasing.md").read_text()
    for options in ("--require-hashes --no-deps --only-binary :all:", "--no-deps --no-build-isolation"):
        assert options in text
        assert options in commands


def test_nginx_accepts_its_config(tmp_path: Path) -> None:
    text = (DEPLOY / "nginx/nginx.conf").read_text().replace("/tmp/", f"{tmp_path}/")
    text = re.sub(r"gateway-\d", "127.0.0.1", text).replace("/dev/std", f"{tmp_path}/std")
    (tmp_path / "nginx.conf").write_text(text)
    run(tool("nginx"), "-t", "-q", "-p", tmp_path, "-e", f"{tmp_path}/errors", "-c", tmp_path / "nginx.conf")


def test_envoy_accepts_its_config() -> None:
    run(tool("envoy"), "--mode", "validate", "--log-level", "warning", "--config-path", DEPLOY / "envoy/envoy.yaml")


def test_prometheus_accepts_its_config() -> None:
    run(tool("promtool"), "check", "config", DEPLOY / "prometheus/prometheus.yaml")


def test_systemd_accepts_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze")
    unit = tmp_path / "umg.service"
    unit.write_text((DEPLOY / "systemd/umg.service").read_text().replace("/opt/umg/bin/umg", "/bin/true"))
    assert run(analyze, "verify", unit).strip() == ""
    level = re.search(r"exposure level for umg.service: ([0-9.]+)", run(analyze, "security", "--offline=true", unit))
    assert level is not None
    assert float(level[1]) <= MAX_EXPOSURE


AUTHORITIES = "-----BEGIN CERTIFICATE-----\nof a test\n-----END CERTIFICATE-----\n"
VALUES = {
    "defaults": {},
    "everything": {
        "secrets": SECRETS, "preStopSeconds": 5, "imagePullSecrets": [{"name": "registry"}],
        "autoscaling": {"enabled": True}, "serviceMonitor": {"enabled": True}, "ingress": {"enabled": True}, "proxy": {"enabled": True},
        "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]},
        "environment": {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": ".svc,10.0.0.0/8"}, "authorities": AUTHORITIES,
    },
    "existing secret": {"existingSecret": "umg"},
}  # fmt: skip


@pytest.mark.parametrize("case", VALUES)
def test_the_chart_renders_valid_resources(case: str, tmp_path: Path) -> None:
    helm = tool("helm")
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(VALUES[case]))
    run(helm, "lint", "--strict", "--kube-version", KUBERNETES, CHART, "--values", values)
    rendered = run(helm, "template", "gateway", CHART, "--kube-version", KUBERNETES, "--values", values)
    resources = [found for found in yaml.safe_load_all(rendered) if found is not None]
    kinds = [found["kind"] for found in resources]
    assert {"Deployment", "Service", "ConfigMap", "PodDisruptionBudget"} <= set(kinds)
    assert ("HorizontalPodAutoscaler" in kinds) == (case == "everything")
    assert ("Secret" in kinds) == (case != "existing secret")
    [files, *maps] = [found["data"] for found in resources if found["kind"] == "ConfigMap"]
    config, of_envoy = files["config.yaml"], [next(iter(each.values())) for each in maps]
    for text in of_envoy:
        (tmp_path / "envoy.yaml").write_text(text)
        run(tool("envoy"), "--mode", "validate", "--log-level", "warning", "--config-path", tmp_path / "envoy.yaml")
        assert "address: gateway-grpc.default.svc" in text
    assert parse(config, "config.yaml", SECRETS).drain == 30
    [deployment, *proxies] = [found for found in resources if found["kind"] == "Deployment"]
    assert len(proxies) == (case == "everything")
    assert ("replicas" in deployment["spec"]) == (case != "everything")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= 40
    variables = {each["name"]: each["value"] for each in pod["containers"][0].get("env", [])}
    if case == "everything":
        assert files["authorities.pem"] == AUTHORITIES
        assert variables == {**VALUES[case]["environment"], "SSL_CERT_FILE": "/etc/umg/authorities.pem"}
        assert {"name": "config", "mountPath": "/etc/umg", "readOnly": True} in pod["containers"][0]["volumeMounts"]
    else:
        assert not variables
    (tmp_path / "rendered.yaml").write_text(rendered)
    if (schemas := os.environ.get("UMG_KUBERNETES_SCHEMAS")) is not None:
        conform = [tool("kubeconform"), "-strict", "-summary", "-output", "json", "-kubernetes-version", KUBERNETES]
        found = run(*conform, "-schema-location", f"{schemas}/{LOCATION}", tmp_path / "rendered.yaml")
        counts = {"valid": len(resources), "invalid": 0, "errors": 0, "skipped": 0}
        assert json.loads(found)["summary"] == counts


def test_a_misspelt_field_is_found(tmp_path: Path) -> None:
    if (schemas := os.environ.get("UMG_KUBERNETES_SCHEMAS")) is None:
        pytest.skip("`make deploycheck` writes the schemas")
    spec = {"selector": {"matchLabels": {}}, "minAvailabel": 1}
    text = yaml.safe_dump({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": spec})
    command = [tool("kubeconform"), "-strict", "-schema-location", f"{schemas}/{LOCATION}"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "minAvailabel" in done.stdout


def test_the_dashboard_is_where_grafana_reads_it() -> None:
    assert json.loads((DEPLOY / "grafana/dashboard.json").read_text())["panels"]
