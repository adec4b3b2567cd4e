"""The programs of others that call the gateway: SDKs, coding agents, clients, browsers, Connect and the conformance kit."""
