"""Steps of one call: interceptor, admission, routing, attempts with failover, completion of the response, usage
record.
"""
