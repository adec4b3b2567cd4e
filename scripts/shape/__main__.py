"""Command `make shape`: prints a line for each measure, and exits with 1 if one is outside of its limit."""

import sys

from scripts.shape import import_graph, names, operation_names, parameter_walk, servicers


def main() -> int:
    """Print all measures, and the places of each that fails. Return the exit status."""
    found = list(import_graph.measures(import_graph.build()))
    for measured in (names, operation_names, servicers, parameter_walk):
        found += measured.measures()
    print("\n".join(measure.line() for measure in found))
    return 0 if all(measure.holds for measure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
