"""Four faces times four upstream formats, over HTTP, without any SDK."""
