"""Check the packages of a lock file for known vulnerabilities, with pip-audit.

An audit that could not look up every package has failed: "nothing found" would be untrue of the rest.
"""

import argparse
import json
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "develop.lock"
FOUND, UNKNOWN = 1, 2  # exit statuses
ELSEWHERE = "Run `make audit` where that source is reachable, or name a mirror: make audit audit_args='--osv-url URL'."


def audit(lock: Path, options: list[str]) -> tuple[int, str]:
    """Return the exit status and the report of an audit of `lock`; `options` are more options of pip-audit."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(Path(sysconfig.get_path("scripts")) / "pip-audit"), "--vulnerability-service", "osv"]
        command += ["--requirement", str(lock), "--require-hashes", "--disable-pip", "--progress-spinner", "off"]
        command += ["--format", "json", "--output", str(report), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not report.exists():
            return UNKNOWN, _not_audited(lock, done.stderr)
        return judge(json.loads(report.read_text()))


def judge(report: dict[str, Any]) -> tuple[int, str]:
    """Return the exit status and the text to print for a report of pip-audit."""
    packages = report["dependencies"]
    skipped = [f"{package['name']}: {package['skip_reason']}" for package in packages if "skip_reason" in package]
    found = [
        f"{package['name']} {package['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'none'}"
        for package in packages
        for flaw in package.get("vulns", [])
    ]
    if skipped:
        count = (
            f"audit failed: {len(skipped)} of {len(packages)} packages are unknown to the source of vulnerabilities."
        )
        return UNKNOWN, "\n".join([*found, *skipped, count, ELSEWHERE])
    if found:
        return FOUND, "\n".join([*found, "audit failed: raise these versions with `make lock lock_args=--upgrade`."])
    return 0, f"No known vulnerabilities in {len(packages)} packages."


def _not_audited(lock: Path, error: str) -> str:
    last = (error.strip().splitlines() or ["no reason given"])[-1]
    return f"audit failed: nothing in {lock.name} was audited, the source gave no response ({last}).\n{ELSEWHERE}"


def main() -> int:
    """Audit the lock of all packages. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lock", type=Path, default=LOCK)
    arguments, options = parser.parse_known_args()
    status, words = audit(arguments.lock, options)
    print(words, file=sys.stderr if status else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())
