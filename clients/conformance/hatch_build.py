"""Build hook that writes the schema of `umg.v1`, as a set of descriptors, from the gateway's `proto/`."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SCHEMA = Path("src/umg_conformance/schema.binpb")
# Imported by the details of gRPC errors, which the package adds to the schema.
WELL_KNOWN = ["google/protobuf/any.proto", "google/protobuf/duration.proto"]


class GenerateHook(BuildHookInterface[Any]):
    """Hook that runs before every build of an sdist or wheel, editable or not."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the schema into the package. Raises RuntimeError for a .proto file that does not compile."""
        repository = Path(self.root).parents[1]
        if (repository / "proto" / "umg").is_dir():  # absent in an unpacked sdist, which contains the schema
            generate(repository, Path(self.root) / SCHEMA)


def generate(repository: Path, schema: Path) -> None:
    """Write the descriptors of our files, and of all files that they import."""
    compile_protos = runpy.run_path(str(repository / "hatch_build.py"))["compile_protos"]
    compile_protos(repository, ["--include_imports", f"--descriptor_set_out={schema}"], WELL_KNOWN)
