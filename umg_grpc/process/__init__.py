"""Processes of `umg serve`: config, ports, workers, reloads and certificates, and the factories of their parts."""
