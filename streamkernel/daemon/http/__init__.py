"""The HTTP server: a Starlette application on uvicorn, in a thread, with limits for clients."""
