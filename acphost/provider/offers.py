"""What the host tells an agent it can do for it (guide section 3.2).

Only what has a handler in `session` may stand here: an offer without one is a promise broken.
"""

from collections.abc import Mapping

CLIENT_CAPABILITIES: Mapping[str, object] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "elicitation": {"form": {}, "url": {}},
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
}
