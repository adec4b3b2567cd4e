"""Write the Prometheus alerts, the Grafana dashboard and the documentation's table of alerts:
`python -m scripts.monitoring`; with `--check`, compare them with the files.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from scripts.monitoring.alerts import ALERTS
from scripts.monitoring.panels import PANELS, Panel

ROOT = Path(__file__).resolve().parents[2]
RULES = "deploy/prometheus/alerts.yaml"
DASHBOARD = "deploy/grafana/dashboard.json"
PAGE = "docs/operations.md"
SECTION = re.compile(r"(\n## Alerts\n.*?\n\n)(\|.*?\n)(?=\n)", re.DOTALL)
ORIGIN = "Made by scripts/monitoring, never edited."
WIDTH, HEIGHT, COLUMNS = 8, 8, 24
"""Size of a panel and width of the dashboard, in units of Grafana's grid."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def rules() -> str:
    """Return the file of Prometheus rules."""
    entries = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            **({"for": alert.wait} if alert.wait != "0m" else {}),
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.meaning, "description": alert.action},
        }
        for alert in ALERTS
    ]
    groups = {"groups": [{"name": "umg", "rules": entries}]}
    return f"# {ORIGIN}\n" + yaml.safe_dump(groups, sort_keys=False, width=1000)


def dashboard() -> str:
    """Return the dashboard for Grafana 10 or newer, whose data source is selected at its import."""
    panels: list[dict[str, Any]] = []
    top, left, row = 0, 0, ""
    for panel in PANELS:
        if panel.row != row:
            top, left, row = top + (HEIGHT if panels else 0), 0, panel.row
            panels.append(_panel(len(panels) + 1, row, "row", (0, top, COLUMNS, 1)))
            top += 1
        elif left + WIDTH > COLUMNS:
            top, left = top + HEIGHT, 0
        panels.append(_graph(len(panels) + 1, panel, (left, top, WIDTH, HEIGHT)))
        left += WIDTH
    variable = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    made = {
        "uid": "unified-model-gateway",
        "title": "Unified Model Gateway",
        "description": ORIGIN,
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": panels,
    }
    return json.dumps(made, indent=2) + "\n"


def _panel(number: int, title: str, kind: str, place: tuple[int, int, int, int]) -> dict[str, Any]:
    return {"id": number, "title": title, "type": kind, "gridPos": dict(zip("xywh", place, strict=True))}


def _graph(number: int, panel: Panel, place: tuple[int, int, int, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        **_panel(number, panel.title, "timeseries", place),
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def table() -> str:
    """Return the table of alerts for the documentation."""
    lines = ["| alert | severity | meaning | action |", "|---|---|---|---|"]
    lines += [f"| `{alert.name}` | {alert.severity} | {alert.meaning} | {alert.action} |" for alert in ALERTS]
    return "\n".join(lines) + "\n"


def files(root: Path) -> dict[str, str]:
    """Return the content of each generated file by its path. Raise ValueError if the page has no section for
    the table.
    """
    page = (root / PAGE).read_text()
    made, count = SECTION.subn(lambda match: match[1] + table(), page)
    if count != 1:
        raise ValueError(f"{PAGE}: expected one section `## Alerts` with a table")
    return {RULES: rules(), DASHBOARD: dashboard(), PAGE: made}


def main() -> int:
    """Write the files, or compare them. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the files, and write none")
    check = parser.parse_args().check
    different = {path: text for path, text in files(ROOT).items() if _read(ROOT / path) != text}
    for path, text in different.items():
        print(f"{path} differs from scripts/monitoring" if check else f"wrote {path}")
        if not check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(text)
    return 1 if check and different else 0


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
