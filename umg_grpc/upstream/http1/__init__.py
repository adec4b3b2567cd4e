"""HTTP/1.1 client for calls of providers, optimized for little CPU time per call.

`Client.fetch` returns a whole response, `Client.open` a stream. Compared to a general client, an exchange takes one
write, one future for each wait and no task; a connection has one timer, rescheduled only when it fires; the head of a
request is encoded once for all calls to a URL with the same headers. llhttp parses the responses.
"""
