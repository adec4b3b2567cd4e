"""Steps of one call, from the interceptor to the answer."""
