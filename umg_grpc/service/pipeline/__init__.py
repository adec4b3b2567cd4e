"""Steps of one call: interceptor, admission, routing, attempts with failover, completion, usage record."""
