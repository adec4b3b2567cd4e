"""Implementation of the `umg.v1` services: a servicer for each, and the pipeline that validates, admits and routes a
call.
"""
