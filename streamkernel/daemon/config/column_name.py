"""The name of a column, in the one form that names have.

It stands alone: the HTTP server's process reads other fields of the configuration, and knows no connector.
"""

from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from streamkernel.connectors.names import nfc

__all__ = ["ColumnName"]

ColumnName: TypeAlias = Annotated[str, AfterValidator(nfc)]
