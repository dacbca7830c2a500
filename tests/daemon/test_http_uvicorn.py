"""What we use of uvicorn and it does not promise: a release that takes one of these away fails here, by its name."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

OVERRIDDEN = {
    *("connection_made", "connection_lost", "data_received", "eof_received", "send_400_response"),
    *("on_message_begin", "on_url", "on_header", "on_headers_complete", "on_body", "on_message_complete"),
    "on_response_complete",
}
USED = {
    HttpToolsProtocol: {
        "cycle",
        "flow",
        "headers",
        "logger",
        "loop",
        "pipeline",
        "scheme",
        "client",
        "transport",
        "url",
    },
    RequestResponseCycle: {"disconnected", "message_event", "response_complete", "response_started"},
    ServerState: {"connections", "tasks"},
}
CALLED = {
    HttpToolsProtocol: {"shutdown", "_unset_keepalive_if_required"},
    FlowControl: {"resume_reading"},
}


def assigned(of: type) -> set[str]:
    """The attributes that the methods of a class set on their object."""
    found = ast.walk(ast.parse(textwrap.dedent(inspect.getsource(of))))
    return {node.attr for node in found if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}


@pytest.mark.parametrize("name", sorted(OVERRIDDEN))
def test_what_we_override_is_called(name: str) -> None:
    assert inspect.isfunction(vars(HttpToolsProtocol).get(name)), f"uvicorn's HttpToolsProtocol has no {name} any more"


@pytest.mark.parametrize(("of", "names"), USED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_we_read_is_kept(of: type, names: set[str]) -> None:
    missing = names - assigned(of)
    assert not missing, f"uvicorn's {of.__name__} has no {missing} any more"


@pytest.mark.parametrize(("of", "names"), CALLED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_what_we_call_is_there(of: type, names: set[str]) -> None:
    missing = names - vars(of).keys()
    assert not missing, f"uvicorn's {of.__name__} has no {missing} any more"


def test_it_is_made_as_we_make_it() -> None:
    assert list(inspect.signature(HttpToolsProtocol).parameters) == ["config", "server_state", "app_state", "_loop"]
