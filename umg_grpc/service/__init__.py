"""Implementation of the gRPC services of `umg.v1`. Each has a servicer; pipelines validate, admit and route calls, send
them to providers, and complete the responses.
"""
