"""What the daemon says of its own accord: notifications, and what it asks of a client."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from acphost.wire.acp_files import (
    ReadTextFile,
    ReadTextFileResult,
    WriteTextFile,
    WriteTextFileResult,
)
from acphost.wire.host import EventsNotification

READ_TEXT_FILE = "fs/read_text_file"
WRITE_TEXT_FILE = "fs/write_text_file"


class Asked(NamedTuple):
    """A request of the daemon to a client that offered to answer it."""

    params: type[msgspec.Struct]
    result: type[msgspec.Struct]


#: By method, with their params.
NOTIFICATIONS: Mapping[str, type[msgspec.Struct]] = {"events": EventsNotification}

#: By method; a client says in `initialize` which it answers.
QUESTIONS: Mapping[str, Asked] = {
    READ_TEXT_FILE: Asked(ReadTextFile, ReadTextFileResult),
    WRITE_TEXT_FILE: Asked(WriteTextFile, WriteTextFileResult),
}
