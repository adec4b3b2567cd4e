"""Conformance kit: runs checks of the wire formats against any gateway or provider. The checks are data:
`checks/*.yaml` has one file for each wire format. `check_files` reads them, `http_client` and `grpc_client` make their
calls, `expectations` compares the responses, `check_runner` does all of it, and `result_reports` prints the results.
docs/conformance.md describes the language of the files.
"""
