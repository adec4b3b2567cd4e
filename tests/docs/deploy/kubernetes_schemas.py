"""Write JSON schemas of Kubernetes' resources for kubeconform: `python -m tests.docs.deploy.kubernetes_schemas FOLDER`.

They are made from files of two Go modules, which the Go module proxy has: the API of Kubernetes, and the definition of
ServiceMonitor.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import yaml

KUBERNETES = "1.31.0"
API = f"k8s.io/kubernetes@v{KUBERNETES}", "api/openapi-spec/swagger.json"
OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.82.2"
MONITORS = OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"
"""Go module, and a file in it."""
LOCATION = "{{ .ResourceKind }}{{ .KindSuffix }}.json"
"""Name of a schema below the folder, as a template of kubeconform."""
REFERENCE = "#/definitions/"
INT_OR_STRING = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
QUANTITY = {"oneOf": [{"type": "string"}, {"type": "number"}]}
QUANTITY_NAME = "io.k8s.apimachinery.pkg.api.resource.Quantity"

Json: TypeAlias = dict[str, object]


def downloaded(module: str, path: str) -> str:
    """Return a file of a Go module. Raise CalledProcessError where Go or its proxy is absent."""
    done = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=True)
    return (Path(json.loads(done.stdout)["Dir"]) / path).read_text(encoding="utf-8")


def strict(schema: object) -> object:
    """Return a schema in which objects have no other members than the listed ones, as a strict API server checks."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string"):
        return INT_OR_STRING
    found = {name: strict(each) for name, each in schema.items()}
    is_object = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if is_object and not schema.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    return found


def references(schema: object) -> Iterator[str]:
    """Yield the names of the definitions that a schema names."""
    match schema:
        case {"$ref": str(name)}:
            yield name.removeprefix(REFERENCE)
        case dict():
            for each in schema.values():
                yield from references(each)
        case list():
            for each in schema:
                yield from references(each)
        case _:
            pass


def with_definitions(name: str, definitions: Mapping[str, object]) -> Json:
    """Return the schema of a definition, with all that it needs."""
    needed, waiting = dict[str, object](), [name]
    while waiting:
        if (each := waiting.pop()) not in needed:
            needed[each] = definitions[each]
            waiting += references(definitions[each])
    return {"$ref": f"{REFERENCE}{name}", "definitions": needed}


def file_name(group: str, version: str, kind: str) -> str:
    """Return the name of a resource's file, as kubeconform forms it."""
    return "-".join(filter(None, [kind.lower(), group.partition(".")[0], version])) + ".json"


def schemas() -> Iterator[tuple[str, Json]]:
    """Yield the name of a file and the schema of each resource."""
    definitions = {name: strict(each) for name, each in json.loads(downloaded(*API))["definitions"].items()}
    definitions[QUANTITY_NAME] = QUANTITY
    for name, schema in definitions.items():
        kinds = schema.get("x-kubernetes-group-version-kind", []) if isinstance(schema, dict) else []
        if len(kinds) == 1:  # several: a part of all requests, for example DeleteOptions
            yield file_name(**kinds[0]), with_definitions(name, definitions)
    monitor = yaml.safe_load(downloaded(*MONITORS))["spec"]
    for version in monitor["versions"]:
        schema = strict(version["schema"]["openAPIV3Schema"])
        schema["properties"]["metadata"] = {"type": "object"}  # a CRD leaves it to the server
        yield file_name(monitor["group"], version["name"], monitor["names"]["kind"]), schema


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for file, content in schemas():
        (target / file).write_text(json.dumps(content), encoding="utf-8")
