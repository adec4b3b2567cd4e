"""Steps of one call, from the interceptors to the answer."""
