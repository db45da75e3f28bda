"""What agents ask people beside permission: a form to fill in, or an address to go to."""

from msgspec import UNSET, Raw, UnsetType

from acphost.wire.base import AcpStruct
from acphost.wire.jsonrpc import RequestId


class ElicitationRequest(AcpStruct, frozen=True):
    """`elicitation/create`, about a session or about a request of ours that is open."""

    mode: str = ""
    message: str = ""
    session_id: str | None = None
    request_id: RequestId | UnsetType = UNSET
    tool_call_id: str | None = None
    requested_schema: Raw | UnsetType = UNSET
    elicitation_id: str | None = None
    url: str | None = None


class ElicitationComplete(AcpStruct, frozen=True):
    """`elicitation/complete`: what an address was for has been done there."""

    elicitation_id: str | None = None


class CancelRequest(AcpStruct, frozen=True):
    """`$/cancel_request`: one side does not need an answer any more."""

    request_id: RequestId
