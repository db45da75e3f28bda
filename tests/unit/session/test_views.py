"""Rows as records."""

import json

import msgspec

from acphost.session import views
from tests.support.stores import run_row, session_row

SESSION = (
    "schema sessionId title agentId runtime profile resolvedModel workspaceId cwd documentId "
    "actorId pinned status statusReason mode acpSessionId activeRunId queuedCount lastRunStatus "
    "lastSeq createdAt updatedAt"
)
RUN = (
    "schema hostRunId requestId agentId provider profile providerRunId sessionId actorId "
    "workspaceId documentId parentRunId status queuePosition stopReason errorCode error empty "
    "continuity acpSessionId contextRefs targetSnapshotHash capabilitySnapshotHash "
    "cancelRequestedAt firstSeq lastSeq terminalSeq dismissedAt createdAt startedAt endedAt "
    "updatedAt"
)


def shown(record: msgspec.Struct) -> dict[str, object]:
    value: dict[str, object] = json.loads(msgspec.json.encode(record))
    return value


def test_a_session_has_every_field_of_the_contract() -> None:
    seen = shown(views.session_view(session_row(last_seq=7, queued_count=2)))
    assert set(SESSION.split()) <= seen.keys()
    assert seen["schema"] == "mnote.ai_session.v1"
    assert seen["lastSeq"] == "000000000000000007"
    assert seen["createdAt"] == "1970-01-01T00:00:00.001Z"


def test_a_run_has_every_field_of_the_contract() -> None:
    seen = shown(views.run_view(run_row(1)))
    assert set(RUN.split()) <= seen.keys()
    assert "envelope" not in seen


def test_what_can_be_done_about_an_open_outcome() -> None:
    session, run = session_row(supports_load=True), run_row(1, status="interrupted", last_seq=9)
    recovery = views.recovery_view(run, session, files_touched=["/a"], is_configured=True)
    gone = views.recovery_view(run, session, files_touched=[], is_configured=False)

    assert (recovery.last_seq, recovery.can_load) == ("000000000000000009", True)
    assert recovery.files_touched == ["/a"]
    assert recovery.actions == ["resume", "resume_with_history", "dismiss"]
    assert gone.actions == ["dismiss"]


def test_groups_of_runtimes() -> None:
    for runtime, group in (("hermes", "hermes"), ("reasonix", "reasonix"), ("acp", "acp")):
        assert views.session_view(session_row(runtime=runtime)).runtime_group == group


def test_silence_outgrows_the_stored_word() -> None:
    assert views.quiet_or("running", is_quiet=True) == "quiet"
    assert views.quiet_or("running", is_quiet=False) == "running"


def test_the_envelope_names_the_folders_that_are_allowed() -> None:
    run = run_row(1, context_refs=b'["page"]', target=b'{"editorTarget":{"line":1}}')
    envelope = json.loads(bytes(views.envelope(run, session_row(cwd="/work"), ["/work", "/more"])))
    assert envelope["allowedRoots"] == ["/work", "/more"]
    assert envelope["contextRefs"] == ["page"]
    assert envelope["editorTarget"] == {"line": 1}
    assert envelope["runTargetSnapshot"] is None
