"""Implementation of the gRPC services of `umg.v1`: a servicer for each, and the pipelines that validate, admit and
route calls, send them to providers, and complete the responses.
"""
