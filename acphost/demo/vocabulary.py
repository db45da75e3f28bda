"""All step words together, and the language reference that `--help` prints."""

from collections.abc import Iterable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from acphost.demo.answers import ANSWERING
from acphost.demo.flow import FLOW
from acphost.demo.process import PROCESS
from acphost.demo.script import Script, parse_script
from acphost.demo.stage import BUILTIN_VARIABLES, Verb
from acphost.demo.steps import SPEAKING
from acphost.demo.tokens import ScriptError, Token

Vocabulary = Mapping[str, Verb]

VOCABULARY: Vocabulary = {verb.word.name: verb for verb in (*FLOW, *SPEAKING, *ANSWERING, *PROCESS)}

_INTRODUCTION = """\
A script is read line by line; a block is what stands deeper below a line; # begins a comment.

Lines at the left margin are the linear part, played once from top to bottom: INIT, NEW, LOAD,
RESUME, PROMPT, CANCEL and RECV wait for the host, the others act. What the linear part has no
use for goes to the rules, and what no rule takes is answered as a well-behaved agent would
(a prompt gets "ok", history is replayed on load, an unknown method is error -32601).

    ON EVENT ["text" | ~"pattern"] [ONCE] [KEEP] [DEAF] [nth=N] [IF A =|!=|~ B]
        steps …
    DEFINE NAME
        steps, to be played by DO NAME

EVENT is init, authenticate, logout, new, load, resume, list, close, prompt, cancel, garbage (a
line that is no JSON object), eof, term, or a method such as session/set_mode. The first rule
that fits is played, in a thread of its own; a request it has not answered is answered at its
end. ONCE: used up after the first time. nth: the N-th prompt of its session. DEAF: the prompt
is not remembered.

session/cancel stops the running block of its session, which answers `cancelled`. ON cancel
replaces that: the block stops unanswered and the rule is played; with KEEP it goes on beside it.

Texts are words, "…" or '…' with \\n \\r \\t \\0 \\e \\xHH \\uHHHH. JSON may go over several lines.
${NAME} is a variable, ${NAME:-text} with a default, ${#NAME} a number within JSON. Names: SESSION
PROMPT ID METHOD PARAMS LINE CWD N BUSY LIVE KNOWN UUID HEX PID NS, OUTCOME and ANSWER after PERM
and ASK, TERMINAL after ASK terminal/create, I (from 1) and I0 (from 0) in REPEAT, the groups of a
pattern as 1, 2, … or by name, what SET, DO and --set gave, and the environment. $SESSION and
$PROMPT need no braces. Every step takes session=ID to speak for another session, and memory=no to
keep what it says out of the history.
"""


_CHAPTERS = (
    ("Order", FLOW),
    ("Speech", SPEAKING),
    ("Answers and history", ANSWERING),
    ("Process", PROCESS),
)


def reference() -> str:
    """The language, as text for a terminal."""
    lines = [_INTRODUCTION]
    for title, verbs in _CHAPTERS:
        lines.append(f"{title}:")
        for verb in verbs:
            lines.append(f"  {verb.word.usage}")
            lines.append(f"        {verb.word.summary}")
        lines.append("")
    return "\n".join(lines)


def load_script(path: Path, given: Iterable[str] = ()) -> tuple[Script, Vocabulary]:
    """Read a script and the words it brings along; `given` names variables set from outside.

    Raises ScriptError for whatever is wrong with it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ScriptError(f"{path}: cannot read the script: {exc}") from exc
    words = dict(VOCABULARY)
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("WORDS "):
            words |= _bring(path.parent / line.removeprefix("WORDS ").strip(), f"{path}:{number}")
    script = parse_script(text, str(path), {name: verb.word for name, verb in words.items()})
    _check_variables(script, words, frozenset(given))
    return script, words


def _bring(path: Path, where: str) -> dict[str, Verb]:
    """The words that a Python file defines as `VERBS`."""
    spec = spec_from_file_location(f"acphost_words_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ScriptError(f"{where}: there is no file {path}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    verbs: Iterable[Verb] = module.VERBS
    return {verb.word.name: verb for verb in verbs}


def _check_variables(script: Script, words: Vocabulary, given: frozenset[str]) -> None:
    """Refuse a variable that nothing can ever set: it is a misspelling."""
    rules, steps = script.rules, list(script.every_step())
    groups = {
        name.upper()
        for rule in rules
        if rule.match.pattern is not None
        for name in rule.match.pattern.groupindex
    }
    sets = (verb.word.sets for verb in words.values())
    known = BUILTIN_VARIABLES.union(script.own_names(), groups, given, *sets)
    places: list[tuple[str, Iterable[Token]]] = [(rule.where, rule.guard) for rule in rules]
    places += [(step.where, [*step.args, *step.options.values()]) for step in steps]
    for where, tokens in places:
        for token in tokens:
            for variable in token.variables():
                if variable.name in known or variable.default is not None:
                    continue
                if not variable.name.isdecimal():
                    raise ScriptError(
                        f"{where}: ${{{variable.name}}} is not set: pass it as --set "
                        f"{variable.name}=… or in the environment, or give a default with :-"
                    )
