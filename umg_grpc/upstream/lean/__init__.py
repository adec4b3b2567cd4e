"""Whole answers of providers over HTTP/1.1, with as little between the caller and the socket as can be.

`Connections.post` sends a request and gives back its answer. What it saves beside a general client is that an exchange
is one write, one future and no task; that a connection has one timer, moved only when it fires; that the head of a
request is made once for all calls of its kind. Answers are parsed by llhttp.
"""
