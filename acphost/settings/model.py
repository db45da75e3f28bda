"""What can be configured: every key, its type, its limits and its default.

The shapes are also the documentation of the files: `check` refuses what is not here, and words what
it expected from the constraints and descriptions below.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from acphost.wire.policy import PolicyRule

DAY = 86_400

Seconds = Annotated[
    float, Meta(gt=0, le=DAY, description="a number of seconds above 0, at most 86400")
]
#: A wait that may be left out altogether.
Grace = Annotated[float, Meta(ge=0, le=DAY, description="a number of seconds from 0 to 86400")]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
ByteLimit = Annotated[int, Meta(ge=65_536, le=1 << 30)]
FilePath = Annotated[
    str,
    Meta(
        pattern=r"\A(/|~)[^\x00]*\Z",
        description='an absolute path, or one that starts with "~/"',
    ),
]
Text = Annotated[str, Meta(pattern=r"\A[^\x00]+\Z", description="a string that is not empty")]
EnvName = Annotated[
    str,
    Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z", description="the name of an environment variable"),
]
EnvValue = Annotated[str, Meta(pattern=r"\A[^\x00]*\Z", description="a string")]
AgentName = Annotated[
    str,
    Meta(
        pattern=r"\A[a-z0-9][a-z0-9_-]{0,63}\Z",
        description='an agent id: lower-case letters, digits, "-" and "_"',
    ),
]
RuntimeName = Annotated[
    str,
    Meta(
        pattern=r"\A[a-z][a-z0-9_]*\Z",
        description='a kind of agent: lower-case letters, digits and "_"',
    ),
]
Words = Annotated[
    list[EnvValue], Meta(min_length=1, description='a list of strings: ["program", "argument"]')
]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """One table of a configuration file."""


class QueueSettings(Table, frozen=True):
    """What may wait behind a busy agent, and what becomes of it when a run does not end well."""

    limit: Count = 1000
    on_stop: Literal["continue", "hold"] = "continue"
    on_failed: Literal["continue", "hold"] = "continue"
    #: Of unknown outcome: what waits may rely on what nobody knows to have happened.
    on_interrupted: Literal["continue", "hold"] = "hold"


class LimitSettings(Table, frozen=True):
    """Bounds that keep one peer from harming the others."""

    #: Of one line from an agent: above it the connection cannot be trusted any further.
    max_line_bytes: ByteLimit = 64 << 20
    #: Of one line from a client: above it that request is refused.
    client_line_bytes: ByteLimit = 32 << 20
    #: Requests one client may have open at a time.
    max_in_flight: Count = 256
    max_connections: Count = 128
    #: How long a client may take to send `initialize`.
    handshake_timeout: Seconds = 10.0


class RetentionSettings(Table, frozen=True):
    """What is deleted by itself: whole sessions, the longest unused first. None: never."""

    max_age_days: Annotated[int, Meta(ge=1, le=36_500)] | None = None
    max_bytes: Annotated[int, Meta(ge=1 << 20, le=1 << 50)] | None = None


class JournalSettings(Table, frozen=True):
    """How the journal is kept small."""

    #: How long a run is over before its events are packed.
    seal_after: Grace = 60.0
    #: Of its write-ahead log, in bytes: above it a warning is shown.
    wal_limit: ByteLimit = 64 << 20
    retention: RetentionSettings = RetentionSettings()


class DrainSettings(Table, frozen=True):
    """How the daemon stops."""

    timeout: Grace = 15.0


class PermissionSettings(Table, frozen=True):
    """What happens to a question that nobody answers."""

    #: None: it waits as long as it takes.
    timeout: Seconds | None = None
    unattended: Literal["wait", "reject"] = "wait"


class PolicySettings(Table, frozen=True):
    """Rules that answer agents' requests for permission; the first that fits decides."""

    rules: list[PolicyRule] = msgspec.field(default_factory=list)


class FileSettings(Table, frozen=True):
    """What agents may do with files through the host, within the folders of their session."""

    read: Literal["allow", "ask"] = "allow"
    write: Literal["allow", "ask"] = "ask"
    #: Outside of those folders.
    outside: Literal["refuse", "ask"] = "refuse"
    #: Of one answer; a part of a longer file can be asked for.
    max_read_bytes: ByteLimit = 16 << 20
    #: Whether a run's receipt also tells what was changed behind the host's back.
    watch: bool = True


class TerminalSettings(Table, frozen=True):
    """What agents may run through the host."""

    run: Literal["allow", "ask"] = "ask"
    #: Terminals one session may have at a time.
    limit: Annotated[int, Meta(ge=1, le=1000)] = 16
    #: Of the output of one terminal, its end; an agent may ask for less.
    output_bytes: ByteLimit = 1 << 20


class McpSettings(Table, frozen=True, kw_only=True):
    """An MCP server that agents are given: a program to start, or an address."""

    #: The program, looked for in the agent's PATH, with its arguments and environment.
    command: Text | None = None
    args: list[EnvValue] = msgspec.field(default_factory=list)
    env: dict[EnvName, EnvValue] = msgspec.field(default_factory=dict)
    url: Text | None = None
    headers: dict[Text, EnvValue] = msgspec.field(default_factory=dict)
    transport: Literal["http", "sse"] = "http"
    #: None: all of them.
    agents: list[AgentName] | None = None
    enabled: bool = True

    def is_for(self, agent_id: str) -> bool:
        """Whether that agent is given the server."""
        return self.enabled and (self.agents is None or agent_id in self.agents)


class RestartSettings(Table, frozen=True):
    """How often an agent that dies is started again."""

    limit: Annotated[int, Meta(ge=0, le=1000)] = 5
    window: Seconds = 60.0


class ChatSettings(Table, frozen=True, kw_only=True):
    """The endpoint behind an agent with a chat runtime."""

    base_url: Annotated[
        str,
        Meta(
            pattern=r"\Ahttps?://[^\s\x00]+\Z",
            description='the address of an OpenAI-compatible API: "https://host/v1"',
        ),
    ]
    model: Text
    #: The variable of the daemon's environment that holds the key.
    api_key_env: EnvName | None = None
    #: What the model is told before everything else.
    system: Text | None = None
    #: How long the endpoint may be silent.
    read_timeout: Seconds = 300.0


class AgentSettings(Table, frozen=True, kw_only=True):
    """How one agent is started, and how patient the host is with it."""

    #: Left out, the agent's id.
    display_name: Text = ""
    #: The habits it has: "acp" for an agent that keeps to the protocol, else the name of a file of
    #: traits (see `acphost.settings.runtimes`).
    runtime: RuntimeName = "acp"
    #: Not for chat runtimes, whose program comes with acphost.
    command: Words = msgspec.field(default_factory=list)
    #: For chat runtimes only.
    chat: ChatSettings | None = None
    env: dict[EnvName, EnvValue] = msgspec.field(default_factory=dict)
    env_pass: list[EnvName] = msgspec.field(default_factory=list)
    #: None: the PATH of the daemon.
    path: list[Text] | None = None
    #: None: what the traits of the runtime say.
    process: Literal["per_session", "shared"] | None = None
    init_timeout: Seconds = 60.0
    #: Without a sign of life; a load that keeps talking may take longer.
    load_timeout: Seconds = 120.0
    #: A person may have to find a password first.
    login_timeout: Seconds = 600.0
    cancel_grace: Grace = 10.0
    quiet_after: Seconds = 60.0
    #: Whether the tokens in its answers are those of the turn, or all since it began.
    #: None: what the traits of the runtime say.
    usage: Literal["cumulative", "per_turn"] | None = None
    eof_grace: Grace = 3.0
    term_grace: Grace = 3.0
    restart: RestartSettings = RestartSettings()


class AgentsFile(Table, frozen=True):
    """What a file in agents.d may hold."""

    agents: dict[AgentName, AgentSettings] = msgspec.field(default_factory=dict)


class ConfigFile(AgentsFile, frozen=True):
    """What config.toml may hold."""

    #: None: where the platform keeps such things.
    socket: FilePath | None = None
    state_dir: FilePath | None = None
    #: Actor ids with the role `admin`.
    admins: list[Text] = msgspec.field(default_factory=list)
    #: None: the only agent, or the first that can be started.
    default_agent: AgentName | None = None
    #: Whether editors start a daemon where none runs; commands say how to.
    autostart: bool = True
    queue: QueueSettings = QueueSettings()
    limits: LimitSettings = LimitSettings()
    journal: JournalSettings = JournalSettings()
    drain: DrainSettings = DrainSettings()
    permissions: PermissionSettings = PermissionSettings()
    policy: PolicySettings = PolicySettings()
    files: FileSettings = FileSettings()
    terminals: TerminalSettings = TerminalSettings()
    #: By the name that agents know them by.
    mcp: dict[AgentName, McpSettings] = msgspec.field(default_factory=dict)


class Settings(ConfigFile, frozen=True, kw_only=True):
    """All of it merged, checked and expanded: what the daemon runs by."""

    #: Where the user's files are looked for; it need not exist.
    folder: str
    #: The user's files that were read, in the order in which they count.
    read_from: list[str]
