"""The HTTP server: an ASGI application on uvicorn's protocol, with a bound on everything a client may take."""
