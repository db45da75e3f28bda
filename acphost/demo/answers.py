"""Step words that answer, that say anything at all, and that deal with the history."""

from acphost.demo.books import Incoming
from acphost.demo.memory import text_chunk
from acphost.demo.plain_json import NOTHING
from acphost.demo.script import Step, Word
from acphost.demo.stage import Stage, Verb
from acphost.demo.steps import fields
from acphost.demo.tokens import JsonObject, ScriptError


def _labelled(stage: Stage, step: Step) -> Incoming | None:
    label = stage.option(step, "for")
    if not label:
        return None
    found = stage.host.labels.get(label)
    if not isinstance(found, Incoming):
        raise ScriptError(f"{step.where}: nothing was received as={label}")
    return found


def _respond(stage: Stage, step: Step, body: JsonObject) -> None:
    given = step.options["id"].value(stage.lookup) if "id" in step.options else NOTHING
    stage.answer(body, to=_labelled(stage, step), under=given)


_ANSWER_OPTIONS = frozenset({"for", "id"})


def end(stage: Stage, step: Step) -> None:
    """END: answer the prompt with a stop reason and further fields."""
    result: JsonObject = {"stopReason": stage.text(step, 0, "end_turn")}
    result |= fields(stage, step, without=_ANSWER_OPTIONS)
    _respond(stage, step, {"result": result})


def answer(stage: Stage, step: Step) -> None:
    """ANSWER: answer the request at hand with any result."""
    result = step.args[0].value(stage.lookup) if step.args else {}
    _respond(stage, step, {"result": result})


def fail(stage: Stage, step: Step) -> None:
    """FAIL: answer the request at hand with an error."""
    code = step.args[0].value(stage.lookup)
    error: JsonObject = {"code": code, "message": stage.text(step, 1, "Internal error")}
    if len(step.args) > 2:
        error["data"] = step.args[2].value(stage.lookup)
    _respond(stage, step, {"error": error})


def no_answer(stage: Stage, _: Step) -> None:
    """NOANSWER: leave the request open at the end of the block."""
    stage.silent = True


def notify(stage: Stage, step: Step) -> None:
    """NOTIFY: any notification."""
    stage.notify(stage.text(step, 0), step.args[1].value(stage.lookup) if step.args[1:] else {})


def send(stage: Stage, step: Step) -> None:
    """SEND: any message, exactly as given."""
    stage.send(step.args[0].value(stage.lookup))


def recall(stage: Stage, step: Step) -> None:
    """RECALL: say what was asked earlier in the session, also in an earlier process."""
    session = stage.session
    earlier = [] if session is None else session.conversation.prompts
    if stage.request is not None and stage.request.method == "session/prompt":
        earlier = earlier[:-1]
    which = stage.text(step, 0, "first")
    if not earlier:
        text = "nothing"
    elif which == "all":
        text = "\n".join(earlier)
    else:
        text = earlier[0 if which == "first" else -1]
    stage.update(text_chunk("agent_message_chunk", text))


def replay(stage: Stage, step: Step) -> None:
    """REPLAY: send the history of the session again."""
    session = stage.session
    updates = [] if session is None else list(session.conversation.updates)
    if "last" in step.options:
        count = stage.number(step, step.options["last"])
        updates = updates[len(updates) - min(count, len(updates)) :]
    for update in updates:
        stage.check()
        stage.update(update, remember=False)


def remember(stage: Stage, step: Step) -> None:
    """REMEMBER: an update that is only in the history."""
    if stage.session is not None:
        stage.session.conversation.say(stage.object_of(step, step.args[0]))


def forget(stage: Stage, _: Step) -> None:
    """FORGET: drop what has been said since the last prompt."""
    if stage.session is not None:
        stage.session.conversation.forget()


def disown(stage: Stage, _: Step) -> None:
    """DISOWN: however the load is answered, the session stays unknown."""
    if stage.session is not None:
        stage.session.disowned = True


ANSWERING = (
    Verb(
        Word(
            "END",
            "END [REASON] [for=L] [id=ID] [field=value …]",
            "answer the prompt; may be said twice, to misbehave",
            0,
            1,
            None,
        ),
        end,
    ),
    Verb(
        Word(
            "ANSWER", "ANSWER [JSON] [for=L] [id=ID]", "answer the request", 0, 1, _ANSWER_OPTIONS
        ),
        answer,
    ),
    Verb(
        Word(
            "FAIL",
            "FAIL CODE [MESSAGE [DATA]] [for=L] [id=ID]",
            "answer the request with an error",
            1,
            3,
            _ANSWER_OPTIONS,
        ),
        fail,
    ),
    Verb(Word("NOANSWER", "NOANSWER", "leave the request open after the block"), no_answer),
    Verb(Word("NOTIFY", "NOTIFY METHOD [JSON]", "any notification", 1, 2), notify),
    Verb(Word("SEND", "SEND JSON", "any message", 1, 1), send),
    Verb(Word("REMEMBER", "REMEMBER JSON", "an update for the history only", 1, 1), remember),
    Verb(Word("FORGET", "FORGET", "drop what was said since the last prompt"), forget),
    Verb(Word("DISOWN", "DISOWN", "answer a load, yet know nothing of the session"), disown),
    Verb(
        Word("RECALL", "RECALL [first|last|all]", "say what was prompted earlier", 0, 1),
        recall,
    ),
    Verb(
        Word(
            "REPLAY",
            "REPLAY [last=N]",
            "send the session's history again",
            0,
            0,
            frozenset({"last"}),
        ),
        replay,
    ),
)
