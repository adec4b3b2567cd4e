"""Steps of one call: interceptor, admission, routing, attempts with failover, answer, usage record."""
