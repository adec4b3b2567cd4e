"""Rules by which vendors refuse requests, one module a vendor or group of vendors."""
