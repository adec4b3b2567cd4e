"""Conformance kit: runs checks of the wire formats against any gateway or provider. The checks are data:
`checks/*.yaml` has one file for each wire format. `check_files` reads them, `http_calls` and `grpc_calls` make their
calls, `expectations` compares the responses, `check_runner` does all of it, and `report` prints the results.
docs/conformance.md describes the language of the files.
"""
