"""What a configuration says about HTTP endpoints: the protection they have in common, and the prediction service."""

from __future__ import annotations

import base64
import re
from typing import Annotated

from pydantic import Field, SecretStr

from streamkernel.daemon.config.fields import Host, Number, Path, Positive, Section, Whole, must

__all__ = ["BasicAuthConfig", "EndpointConfig", "ServeConfig", "TlsConfig"]


_HOST_PATTERN = re.compile(r"\*|(\*\.)?[\w-]+(\.[\w-]+)*\.?", re.ASCII)
# HTTP's basic authentication ends the name at a colon.
_no_colon = must("not contain a colon", lambda name: ":" not in name, got=False)
_host_pattern = must("be a host name without scheme and port, *.NAME or *", _HOST_PATTERN.fullmatch)


class BasicAuthConfig(Section):
    """The name and password that clients must send. /healthz and /readyz stay open."""

    username: Annotated[str, _no_colon] = Field(min_length=1, description="Without a colon.")
    password: SecretStr = Field(min_length=1, description="Best set by an environment variable.")

    @property
    def header(self) -> str:
        """The value of the header Authorization, secret in the clear."""
        pair = f"{self.username}:{self.password.get_secret_value()}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"


class TlsConfig(Section):
    """A certificate and its key, as PEM files."""

    certificate: Path = Field(description="The file of the certificate, followed by its chain.")
    key: Path = Field(description="The file of its private key, without a password.")


class EndpointConfig(Section):
    """An HTTP endpoint: where it listens, and to whom it answers."""

    host: Host = Field(default="127.0.0.1", description="The address to listen on.")
    port: Annotated[Whole, Field(ge=0, le=65535)] = Field(default=0, description="The port; 0 takes a free one.")
    allowed_hosts: list[Annotated[str, _host_pattern]] = Field(
        default_factory=list,
        description="Host names that requests may use, apart from localhost, host, the machine's name and any address. "
        "*.example.org allows all names with that ending, * allows all.",
    )
    max_connections: Annotated[Positive, Field(le=10_000)] = Field(
        default=64, description="How many connections may be open at once. The endpoint refuses further ones."
    )
    basic_auth: BasicAuthConfig | None = None
    tls: TlsConfig | None = None


class ServeConfig(EndpointConfig):
    """Predictions over HTTP by `streamkernel serve`: /predict, /learn, /openapi.json, /metrics, /healthz, /readyz."""

    port: Annotated[Whole, Field(ge=0, le=65535)] = Field(
        default=9109, description="The port. 0 picks a free one and logs it."
    )
    reload: Annotated[Number, Field(gt=0)] = Field(
        default=1.0, description="How often to look for a newer checkpoint, in seconds."
    )
    max_body_bytes: Annotated[Positive, Field(le=2**28)] = Field(
        default=1_048_576, description="The maximum length of a request body, in bytes."
    )
    max_records: Positive = Field(default=1000, description="How many records a request may have.")
