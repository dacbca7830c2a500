"""What we use of uvicorn and it does not promise: a release that takes one of these away fails here, by its name."""

from __future__ import annotations

import ast
import inspect
import textwrap

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

OVERRIDDEN = {
    *("connection_made", "connection_lost", "data_received", "eof_received", "send_400_response"),
    *("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete"),
    "on_response_complete",
}
READ = {
    HttpToolsProtocol: {
        *("cycle", "flow", "headers", "logger", "loop", "pipeline", "scheme", "client", "transport", "url"),
    },
    RequestResponseCycle: {"disconnected", "message_event", "response_complete", "response_started"},
    ServerState: {"connections", "tasks"},
}
CALLED = {
    HttpToolsProtocol: {"shutdown", "_unset_keepalive_if_required"} | OVERRIDDEN,
    FlowControl: {"resume_reading"},
}


def assigned(of: type) -> set[str]:
    """The attributes that the methods of a class set on their object."""
    found = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(of))))
    return {node.attr for node in found if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


def test_what_we_use_is_there() -> None:
    """Methods that we override are called by uvicorn, and those that we call are there; what we read is set."""
    for of, names in CALLED.items():
        methods = {name for name, value in vars(of).items() if inspect.isfunction(value)}
        assert names - methods == set(), f"gone from uvicorn's {of.__name__}"
    for of, names in READ.items():
        assert names - assigned(of) == set(), f"gone from uvicorn's {of.__name__}"
    assert list(inspect.signature(HttpToolsProtocol).parameters) == ["config", "server_state", "app_state", "_loop"]
