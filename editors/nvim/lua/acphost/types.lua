---@meta acphost.types
-- Made by `acphost schema --lua` from the daemon's own types: change those, not this.
-- schema revision 1-f2ff6fd2e917

---@alias acphost.Method
---| "initialize"
---| "host/ping"
---| "host/stats"
---| "host/schema"
---| "host/reload"
---| "host/backup"
---| "host/retention"
---| "host/shutdown"
---| "agent/list"
---| "agent/get"
---| "agent/check"
---| "agent/authenticate"
---| "agent/logout"
---| "agent/probe"
---| "session/create"
---| "session/list"
---| "session/get"
---| "session/configure"
---| "session/rename"
---| "session/pin"
---| "session/delete"
---| "session/discover"
---| "session/adopt"
---| "session/fork"
---| "session/activeRun"
---| "run/create"
---| "run/get"
---| "run/list"
---| "run/events"
---| "run/wait"
---| "run/cancel"
---| "run/resume"
---| "run/dismiss"
---| "queue/list"
---| "queue/edit"
---| "queue/move"
---| "queue/hold"
---| "queue/release"
---| "events/subscribe"
---| "events/unsubscribe"
---| "permission/list"
---| "permission/respond"
---| "elicitation/respond"
---| "runtime/status"
---| "runtime/start"
---| "runtime/reset"
---| "runtime/logs"
---| "runtime/health"
---| "runtime/processes"
---| "usage/get"
---| "job/list"
---| "job/stop"
---| "job/stopAll"
---| "grant/list"
---| "grant/add"
---| "grant/remove"

---@alias acphost.NotificationMethod
---| "events"

---@alias acphost.QuestionMethod
---| "fs/read_text_file"
---| "fs/write_text_file"

---@alias acphost.TerminalKind
---| "run.cancelled"
---| "run.completed"
---| "run.failed"
---| "run.interrupted"

---@alias acphost.ErrorCode
---| "agent_error"
---| "agent_not_found"
---| "agent_unavailable"
---| "already_resolved"
---| "auth_required"
---| "confirmation_required"
---| "conflict"
---| "cursor_foreign"
---| "cursor_future"
---| "cursor_malformed"
---| "internal"
---| "invalid_params"
---| "invalid_request"
---| "method_not_found"
---| "not_initialized"
---| "overloaded"
---| "parse_error"
---| "path_not_granted"
---| "permission_denied"
---| "permission_not_found"
---| "queue_full"
---| "run_not_found"
---| "session_not_found"
---| "shutting_down"
---| "storage_error"
---| "storage_full"
---| "too_large"
---| "unsupported_content"
---| "unsupported_version"

---Part of the runtime status: the agent's side of the conversation.
---@class acphost.AcpStatus
---@field acpSessionId string|nil
---@field supportsSessionLoad boolean|nil
---@field supportsResume boolean|nil
---@field loadAttempted boolean
---@field loadStatus string|nil
---@field replaySeen boolean
---@field replaySeq string|nil
---@field replayMessageCount integer
---@field liveBinding acphost.LiveBinding|nil

---What a client that comes back asks first.
---@class acphost.ActiveRun
---@field run acphost.Run|nil
---@field queued acphost.QueuedRun[]
---@field lastSeq string
---@field schema "mnote.ai_active_run.v1"

---`session/activeRun`.
---@class acphost.ActiveRunParams
---@field sessionId string
---@field workspaceId? string|nil
---@field documentId? string|nil
---@field _meta? any

---Part of the runtime status.
---@class acphost.ActiveRunStatus
---@field runId string
---@field status acphost.RunStatus

---`agent/authenticate`: without a method it tells which there are.
---@class acphost.AgentAuthenticateParams
---@field agentId string
---@field methodId? string|nil
---@field completed? boolean The program of a terminal login was run and ended well.
---@field _meta? any

---What can be told of an agent without starting it.
---@class acphost.AgentCheck
---@field agentId string
---@field ready boolean Whether it could be started now.
---@field launch string[]
---@field version string|nil What it said when it was last started; null if it never was.
---@field findings acphost.Finding[]
---@field schema "mnote.ai_agent_check.v1"

---A configured agent.
---@class acphost.AgentDescriptor
---@field agentId string
---@field displayName string
---@field provider string
---@field runtime string
---@field acpRuntime boolean
---@field health acphost.AgentHealth
---@field probe acphost.AgentProbe|nil What was found when it was last tried out; null if it never was.
---@field schema "mnote.ai_agent_descriptor.v1"

---Can this agent be started here.
---@class acphost.AgentHealth
---@field installed boolean
---@field version string|nil
---@field launch string[]
---@field problems string[] What may surprise is among them: only `state` says whether runs can go there.
---@field state string ready, not_ready, or failed: too often to be started now.

---All configured agents.
---@class acphost.AgentList
---@field actorId string
---@field agents acphost.AgentDescriptor[]
---@field schema "mnote.ai_agent_descriptors.v1"
---@field defaultAgent string|nil The agent of those who name none, if one is configured.

---`agent/list`.
---@class acphost.AgentListParams
---@field profile? string|nil
---@field _meta? any

---What came of it: `choose`, `terminal`, `authenticated`, or `logged_out`.
---@class acphost.AgentLogin
---@field agentId string
---@field status string
---@field methods acphost.AuthChoice[]
---@field methodId string|nil
---@field terminal acphost.TerminalLogin|nil
---@field sessions string[] The sessions that had waited for it, and go on now.

---`agent/get` and `agent/check`.
---@class acphost.AgentParams
---@field agentId string
---@field _meta? any

---How an agent behaved when it was tried out.
---@class acphost.AgentProbe
---@field agentId string
---@field name string
---@field version string
---@field at string
---@field results acphost.PromiseResult[]
---@field schema "mnote.ai_agent_probe.v1"

---`agent/probe`: runs the agent in a scratch folder.
---@class acphost.AgentProbeParams
---@field agentId string
---@field prompts? boolean Two short prompts to its model; without them half of the promises cannot be tried.
---@field _meta? any

---A way to log in that an agent offers.
---@class acphost.AuthChoice
---@field id string
---@field name string
---@field type string `agent`, `terminal`, or whatever else an agent says.
---@field description string|nil

---The answer to `host/backup`.
---@class acphost.BackupDone
---@field path string
---@field bytes integer
---@field durationMs integer
---@field secrets integer How many files of secrets are in it.

---`host/backup`: `path` is absolute; what is there stays unless `force`.
---@class acphost.BackupParams
---@field path string
---@field force? boolean
---@field withSecrets? boolean
---@field _meta? any

---One file; `before` and `after` are `sha256:` and the digest, null where it is not known.
---@class acphost.ChangedFile
---@field path string
---@field change "created"|"deleted"|"modified"
---@field by "agent"|"fs"|"terminal"|"tool" What changed it, as far as the host can tell; `agent`: while the run was at work.
---@field before string|nil
---@field after string|nil
---@field certain boolean Whether the run is known to have left it so. What only changed while it was at work may be a person's doing, or that of a program which somebody else runs.

---Part of the runtime status: what a chat endpoint keeps of the conversation itself.
---@class acphost.ChatStatus
---@field providerConversationId string|nil
---@field remoteDeleteStatus string

---What a client can do; members that are not known here are ignored.
---@class acphost.ClientCapabilities
---@field fs? acphost.FileOffers
---@field permissions? boolean It will put agents' questions to a person.
---@field elicitation? boolean It will show agents' forms to a person.

---Who connects; shown to other clients as the origin of what it did.
---@class acphost.ClientInfo
---@field name string
---@field version? string|nil
---@field title? string|nil

---Which binding a reset ended, and in which process; null where there was none.
---@class acphost.ClosedBinding
---@field binding string|nil
---@field pid integer|nil

---Part of the runtime status: the history packet of the last cold resume.
---@class acphost.ColdResume
---@field packetBytes integer|nil
---@field truncatedReason string|nil

---The history packet of the last cold resume.
---@class acphost.ColdResumeUsage
---@field packetBytes integer|nil
---@field truncatedReason string|nil

---How much is in the agent's context, as it said last.
---@class acphost.ContextSize
---@field used integer|nil
---@field size integer|nil

---Tokens in the agent's context, as it said last.
---@class acphost.ContextUsage
---@field used integer|nil
---@field size integer|nil

---Part of the runtime status: does the agent remember, and why not.
---@class acphost.Continuity
---@field mode acphost.Mode
---@field code acphost.ContinuityCode
---@field reason string|nil

---Whether the agent remembers.
---@alias acphost.ContinuityCode
---| "continuous"
---| "history_fallback"
---| "no_context"
---| "load_failed_new"

---Something that can be set; `key` is `mode`, `model` or the id of a config option.
---@class acphost.Control
---@field key string
---@field kind string `select` or `boolean`.
---@field name string
---@field description string|nil
---@field category string|nil
---@field value string|boolean|nil As the agent said last; null where it did not say.
---@field chosen string|boolean|nil What a person chose, and what is set again after the agent was started anew.
---@field choices acphost.ControlChoice[]

---A value on offer.
---@class acphost.ControlChoice
---@field value string
---@field name string
---@field description string|nil
---@field group string|nil

---Roots opened to the agent.
---@class acphost.Counts
---@field write integer
---@field readOnly integer

---The last row a subscription has scanned.
---@class acphost.Cursor
---@field offset string
---@field seq? string|nil

---A question an agent put to people.
---@class acphost.Decision
---@field permissionId string
---@field kind string
---@field sessionId string
---@field hostRunId string|nil
---@field toolCallKey string|nil
---@field options acphost.PermissionOption[]
---@field status "expired"|"pending"|"resolved"
---@field outcome string|nil
---@field optionId string|nil
---@field by acphost.Origin|nil
---@field rule string|nil
---@field createdAt string
---@field resolvedAt string|nil
---@field expiresAt string|nil
---@field schema "mnote.ai_decision.v1"
---@field request any

---A list answer with a `Decision` each.
---@class acphost.DecisionPage
---@field items acphost.Decision[]
---@field nextCursor string|nil

---A process that an agent started, or that one of those did.
---@class acphost.Descendant
---@field pid integer
---@field command string
---@field memoryBytes integer
---@field ageMs integer

---The answer to `session/discover`.
---@class acphost.Discovered
---@field agentId string
---@field supported boolean Whether the agent can list its sessions at all.
---@field sessions acphost.DiscoveredSession[]
---@field problem string|nil Why the list is not whole; null if it is.

---A session in an agent's own list.
---@class acphost.DiscoveredSession
---@field acpSessionId string
---@field cwd string
---@field title string|nil
---@field updatedAt string|nil
---@field sessionId string|nil The session of ours that is tied to it.

---The answer of methods that have nothing to return.
---@class acphost.Done
---@field ok boolean

---`elicitation/respond`: `content` is the filled-in form, only with `accept`.
---@class acphost.ElicitationRespondParams
---@field elicitationId string
---@field action "accept"|"cancel"|"decline"
---@field content? any
---@field _meta? any

---Why a request failed; `data.code` is the word to match on.
---@class acphost.ErrorObject
---@field code integer
---@field message string An English sentence for people.
---@field data? table

---One journal row as clients read it; a provider's `payload` is its own JSON, verbatim.
---@class acphost.Event
---@field schema string
---@field offset string
---@field sessionId string|nil
---@field seq string|nil
---@field hostRunId string|nil
---@field kind acphost.Kind
---@field source string "mnote": the host itself; "tool"; else the kind of agent: "hermes", "reasonix", "acp", "chat_only", "api_chat", or a word of the user's own runtimes.
---@field createdAt string
---@field payload? any
---@field origin? acphost.Origin
---@field host? any
---@field synthetic? boolean
---@field payloadBase64? string|nil

---A batch for one subscription.
---@class acphost.EventsNotification
---@field subscriptionId string
---@field events acphost.Event[]
---@field cursor acphost.Cursor
---@field caughtUp? boolean

---The answer to `run/events`; events are as on the wire.
---@class acphost.EventsPage
---@field events acphost.Event[]
---@field headSeq string
---@field hasMore boolean

---What became of the agent's own session.
---@class acphost.ExternalDeletion
---@field requested boolean
---@field status string `not_requested`, `deleted`, `unsupported` or `failed`.
---@field error string|nil

---What a client does with files for agents, asked by the requests of that name.
---@class acphost.FileOffers
---@field readTextFile? boolean It knows of text that is not saved yet.
---@field writeTextFile? boolean It takes text into its buffer and saves it.

---One thing that was looked at, and what to do about it.
---@class acphost.Finding
---@field code string
---@field severity acphost.Severity
---@field message string
---@field cure string|nil

---A folder, and what may be done below it in the sessions of an actor.
---@class acphost.Grant
---@field grantId string
---@field actorId string
---@field path string
---@field access "read"|"write"
---@field createdAt string

---`grant/add`: an absolute path to a folder that exists.
---@class acphost.GrantAddParams
---@field path string
---@field access? "read"|"write"
---@field _meta? any

---`grant/remove`.
---@class acphost.GrantRemoveParams
---@field grantId string
---@field _meta? any

---Which daemon this is.
---@class acphost.HostInfo
---@field name string
---@field version string
---@field pid integer

---First request of a connection. Unknown keys are ignored here, and only here.
---@class acphost.InitializeParams
---@field protocolVersion? integer|nil
---@field protocolVersions? integer[]|nil
---@field clientInfo? acphost.ClientInfo|nil
---@field clientId? string|nil
---@field actorId? string|nil
---@field capabilities? acphost.ClientCapabilities

---The answer to a client's first request.
---@class acphost.InitializeResult
---@field protocolVersion integer
---@field schemaRevision string
---@field hostInfo acphost.HostInfo
---@field storeId string
---@field clientId string
---@field actorId string
---@field role string
---@field capabilities table<string, boolean>
---@field limits acphost.Limits

---A command that an agent runs through the host, until the agent has done with it.
---@class acphost.Job
---@field jobId string
---@field title string
---@field status "completed"|"failed"|"running"
---@field sessionId string
---@field hostRunId string|nil

---`job/list`: those of one session, or all.
---@class acphost.JobListParams
---@field sessionId? string|nil
---@field _meta? any

---`job/stop`.
---@class acphost.JobParams
---@field jobId string
---@field _meta? any

---`job/stopAll`: those of one session, or all.
---@class acphost.JobStopAllParams
---@field sessionId? string|nil
---@field _meta? any

---Background jobs of a session.
---@class acphost.Jobs
---@field running integer
---@field items any[]

---The answer to `job/stopAll`.
---@class acphost.JobsStopped
---@field stopped integer
---@field message string

---What an event says.
---@alias acphost.Kind
---| "session.created"
---| "session.info.updated"
---| "session.mode.updated"
---| "session.config.updated"
---| "session.commands.updated"
---| "session.renamed"
---| "session.reset"
---| "session.deleted"
---| "binding.started"
---| "binding.resumed"
---| "binding.loaded"
---| "binding.load_failed"
---| "binding.cold_resumed"
---| "binding.lost"
---| "binding.closed"
---| "run.created"
---| "run.queued"
---| "run.started"
---| "run.cancel_requested"
---| "run.completed"
---| "run.failed"
---| "run.cancelled"
---| "run.interrupted"
---| "run.dismissed"
---| "queue.changed"
---| "queue.held"
---| "queue.released"
---| "message.user"
---| "message.delta"
---| "thought.delta"
---| "plan.updated"
---| "usage.updated"
---| "tool.started"
---| "tool.updated"
---| "tool.completed"
---| "tool.failed"
---| "permission.requested"
---| "permission.resolved"
---| "permission.expired"
---| "elicitation.requested"
---| "elicitation.resolved"
---| "elicitation.expired"
---| "notice"
---| "compaction.updated"
---| "changed_files"
---| "document.changed"
---| "job.started"
---| "job.updated"
---| "job.ended"
---| "mcp.status"
---| "agent.stderr"
---| "error"
---| "evidence"
---| "host.started"
---| "host.stopping"
---| "config.reloaded"
---| "config.rejected"
---| "storage.degraded"
---| "storage.warning"
---| "storage.recovered"
---| "agent.state"

---What a connection may do.
---@class acphost.Limits
---@field maxLineBytes integer
---@field maxInFlight integer

---The agent process that serves a session now.
---@class acphost.LiveBinding
---@field status string
---@field workspaceKey string
---@field pid integer|nil

---One piece of trouble.
---@class acphost.LogItem
---@field at string
---@field kind acphost.Trouble
---@field sessionId string
---@field hostRunId string|nil
---@field agentId string
---@field text string

---What a session waits for, as part of it.
---@class acphost.Login
---@field agentId string
---@field message string
---@field methods acphost.AuthChoice[]

---MCP servers passed to the agent.
---@class acphost.McpStatus
---@field status string
---@field toolCount integer|nil
---@field failed string[]

---How a session's context reached the agent that serves it now.
---@alias acphost.Mode
---| "native_live"
---| "resumed"
---| "loaded"
---| "replay_seen"
---| "load_failed_new"
---| "cold_resumed"
---| "new_session"
---| "server_transcript"

---Part of the runtime status: which model, from where.
---@class acphost.ModelStatus
---@field profileId string
---@field resolvedModel string|nil
---@field providerKind string
---@field credentialStatus string
---@field configSource string
---@field runtimeBinary string|nil

---The share of one model.
---@class acphost.ModelUsage
---@field model string|nil
---@field tokens integer|nil
---@field cost string|nil

---For methods that take none.
---@class acphost.NoParams
---@field _meta? any

---Who caused an event.
---@class acphost.Origin
---@field clientId string
---@field actorId string
---@field clientName string

---A list answer; items are the area's own records.
---@class acphost.Page
---@field items any[]
---@field nextCursor string|nil

---`permission/list`: pending ones unless a status is named.
---@class acphost.PermissionListParams
---@field sessionId? string|nil
---@field status? "all"|"expired"|"pending"|"resolved"
---@field cursor? string|nil
---@field limit? integer
---@field _meta? any

---One offered answer; the kind is a hint, the id is what counts.
---@class acphost.PermissionOption
---@field optionId string
---@field name? string
---@field kind? string

---`permission/respond`: one of the offered options.
---@class acphost.PermissionRespondParams
---@field permissionId string
---@field optionId string
---@field _meta? any

---Answers the permission requests that fit all it names; a list fits by any of its entries.
---@class acphost.PolicyRule
---@field name string Shown and journaled with each answer it gives.
---@field answer "allow_once"|"ask"|"reject_once"
---@field agents? string[] Ids of agents.
---@field kinds? ("delete"|"edit"|"execute"|"fetch"|"move"|"other"|"read"|"search"|"switch_mode"|"think")[] Kinds of tools, as the protocol has them.
---@field tools? string[] Names of tools, as the agent calls them.
---@field paths? string[] Folders or files: absolute, from the home with `~`, or below each root of the session.
---@field commands? string[] How the command begins, word by word: "git status" fits `git status -s`, never `git stash`.

---The answer to `host/ping`.
---@class acphost.Pong
---@field now string
---@field uptimeMs integer

---An agent process of the ledger with what came of it; memory is each one's own.
---@class acphost.ProcessRecord
---@field launchId string
---@field agentId string
---@field sessionId string|nil The session it was started for; null where several share it.
---@field sessionIds string[] The sessions that are bound to it now.
---@field pid integer|nil
---@field state string starting, live, stopping, or left: not seen to end by the daemon that started it.
---@field command string
---@field memoryBytes integer|nil
---@field ageMs integer
---@field descendants acphost.Descendant[]
---@field leftGroup integer[] Descendants that run outside the agent's process group.

---A list answer with a `ProcessRecord` each.
---@class acphost.ProcessRecordPage
---@field items acphost.ProcessRecord[]
---@field nextCursor string|nil

---`runtime/processes`: of one session, or all.
---@class acphost.ProcessesParams
---@field sessionId? string|nil
---@field _meta? any

---What a well-behaved agent keeps, each tried by a probe.
---@alias acphost.Promise
---| "initialize"
---| "new_session"
---| "unknown_method_refused"
---| "bad_input_survived"
---| "unknown_session_refused"
---| "prompt_answered"
---| "cancel_confirmed"
---| "load"
---| "load_replays_before_its_answer"
---| "resume"
---| "resume_does_not_replay"

---Whether one promise holds; null: it was not tried, and `note` says why.
---@class acphost.PromiseResult
---@field promise acphost.Promise
---@field holds boolean|nil
---@field note string|nil

---`queue/edit`: another `prompt` or `text` for a run that waits. `expectedRev` is the `rev` of the item that the change is meant for.
---@class acphost.QueueEditParams
---@field hostRunId string
---@field expectedRev integer
---@field prompt? any[]|nil
---@field text? string|nil
---@field _meta? any

---`queue/hold`.
---@class acphost.QueueHoldParams
---@field sessionId string
---@field reason? string|nil
---@field _meta? any

---`queue/list`.
---@class acphost.QueueListParams
---@field sessionId string
---@field _meta? any

---`queue/move`: another place for a run that waits, counted as `queue/list` counts. A place past the end is the end; one that is taken by the running turn is the first behind it.
---@class acphost.QueueMoveParams
---@field hostRunId string
---@field expectedRev integer
---@field position integer
---@field _meta? any

---Part of the runtime status.
---@class acphost.QueueStatus
---@field queued integer
---@field held string|nil

---A run that waits, as the queue shows it.
---@class acphost.QueuedRun
---@field id string
---@field userId string
---@field workspaceId string
---@field documentId string|nil
---@field sessionId string
---@field runId string
---@field runtime string
---@field profile string
---@field acpSessionId string|nil
---@field payload any
---@field preview string
---@field position integer
---@field rev integer
---@field status "cancelled"|"failed"|"queued"|"started"
---@field heldReason string|nil
---@field createdAt string
---@field updatedAt string
---@field schema "mnote.page_ai_queued_run.v1"

---A list answer with a `QueuedRun` each.
---@class acphost.QueuedRunPage
---@field items acphost.QueuedRun[]
---@field nextCursor string|nil

---`fs/read_text_file`; `line` counts from 1, `limit` lines.
---@class acphost.ReadTextFile
---@field sessionId string
---@field path string
---@field line? integer|nil
---@field limit? integer|nil

---The answer to `fs/read_text_file`.
---@class acphost.ReadTextFileResult
---@field content string

---All that a run has changed, as far as it was seen.
---@class acphost.Receipt
---@field hostRunId string
---@field changedFiles acphost.ChangedFile[]
---@field conflict "external-change-conflict"|"none"
---@field refresh acphost.Refresh
---@field incomplete string|nil Why there may be more; null: there is not.
---@field schema "mnote.ai_run_receipt.v1"

---What a person needs to decide about a run whose outcome is unknown.
---@class acphost.Recovery
---@field wasRunning boolean
---@field lastSeq string
---@field filesTouched string[]
---@field canResume boolean
---@field canLoad boolean
---@field actions string[]

---What an editor has to look at again.
---@class acphost.Refresh
---@field touchesCurrentFile boolean
---@field shouldRefreshEditor boolean
---@field affectedParents string[]

---The answer to `host/reload`: what counts otherwise now, or what is wrong with the files.
---@class acphost.Reloaded
---@field changed string[] Keys as they are written in the files.
---@field agents string[]
---@field needsRestart string[] Keys that count only at the next start.
---@field files string[]
---@field loadedAt string
---@field problem string|nil
---@field mistakes table<string, any>[] Each with `file`, `key`, `text`, `line`, `column`.

---What of the context is taken before anybody has spoken.
---@class acphost.Reserved
---@field tool integer|nil
---@field system integer|nil
---@field context integer|nil

---The answer to `host/retention`: the rules, what went or would go, and what is left.
---@class acphost.RetentionDone
---@field dryRun boolean
---@field maxAgeDays number|nil
---@field maxBytes integer|nil
---@field usedBytes integer
---@field bytes integer
---@field sessions acphost.RetentionItem[]

---A session that retention deleted, or would delete.
---@class acphost.RetentionItem
---@field sessionId string
---@field agentId string
---@field title string|nil
---@field updatedAt string
---@field bytes integer
---@field cause string `age` or `size`.

---`host/retention`: deletes by the configured rules; a dry run only tells.
---@class acphost.RetentionParams
---@field dryRun? boolean
---@field _meta? any

---One prompt and all that came of it.
---@class acphost.Run
---@field hostRunId string
---@field requestId string
---@field agentId string
---@field provider string
---@field profile string
---@field providerRunId string|nil
---@field sessionId string
---@field actorId string
---@field workspaceId string
---@field documentId string|nil
---@field parentRunId string|nil
---@field status acphost.RunStatus
---@field queuePosition integer|nil
---@field stopReason string|nil
---@field errorCode string|nil
---@field error string|nil
---@field empty boolean
---@field continuity acphost.Mode|nil
---@field acpSessionId string|nil
---@field contextRefs string[]
---@field targetSnapshotHash string|nil
---@field capabilitySnapshotHash string|nil
---@field cancelRequestedAt string|nil
---@field firstSeq string|nil
---@field lastSeq string|nil
---@field terminalSeq string|nil
---@field dismissedAt string|nil
---@field createdAt string
---@field startedAt string|nil
---@field endedAt string|nil
---@field updatedAt string
---@field schema "mnote.ai_run.v1"
---@field recovery acphost.Recovery|nil
---@field envelope? any
---@field receipt acphost.Receipt|nil What it has changed; null in lists, and where nothing was seen to change.

---`run/cancel`: answers at once; `run/wait` tells the end.
---@class acphost.RunCancelParams
---@field hostRunId string
---@field holdQueue? boolean
---@field _meta? any

---`run/create`: `sessionId`, or `agentId` and `cwd` for a new session; `prompt` or `text`.
---@class acphost.RunCreateParams
---@field requestId string
---@field sessionId? string|nil
---@field agentId? string|nil
---@field cwd? string|nil
---@field prompt? any[]|nil
---@field text? string|nil
---@field contextRefs? string[]
---@field profile? string|nil
---@field editorTarget? any
---@field runTargetSnapshot? any
---@field documentId? string|nil
---@field workspaceId? string|nil
---@field allowedRoots? any
---@field holdAfter? boolean
---@field _meta? any

---`run/events`: greater seqs only, oldest first.
---@class acphost.RunEventsParams
---@field hostRunId string
---@field afterSeq? integer|string
---@field limit? integer
---@field storeId? string|nil
---@field raw? boolean
---@field _meta? any

---`run/get`.
---@class acphost.RunGetParams
---@field hostRunId string
---@field include? "envelope"[]
---@field _meta? any

---`run/list`, newest first.
---@class acphost.RunListParams
---@field sessionId? string|nil
---@field status? acphost.RunStatus|nil
---@field cursor? string|nil
---@field limit? integer
---@field _meta? any

---A list answer with a `Run` each.
---@class acphost.RunPage
---@field items acphost.Run[]
---@field nextCursor string|nil

---Methods about one run.
---@class acphost.RunParams
---@field hostRunId string
---@field _meta? any

---`run/resume`: a second try of an interrupted run, made once for each `resumeRequestId`.
---@class acphost.RunResumeParams
---@field hostRunId string
---@field resumeRequestId string
---@field withHistory? boolean Begin with the host's history instead of what the agent remembers.
---@field _meta? any

---The life of a run; the last four are final.
---@alias acphost.RunStatus
---| "pending"
---| "running"
---| "interrupted"
---| "completed"
---| "failed"
---| "cancelled"

---What one turn has used.
---@class acphost.RunUsage
---@field prompt integer|nil
---@field completion integer|nil
---@field reasoning integer|nil
---@field cache integer|nil Of the prompt, what came from a cache.
---@field total integer|nil
---@field cost string|nil

---`run/wait`: answers when the run is over, or with the run as it is after `timeoutMs`.
---@class acphost.RunWaitParams
---@field hostRunId string
---@field timeoutMs? integer|nil
---@field _meta? any

---What the daemon rests on.
---@class acphost.RuntimeHealth
---@field agents acphost.AgentCheck[]
---@field store acphost.StoreHealth
---@field mcpBridge string|nil Null: this daemon has none.
---@field knowledge string|nil
---@field schema "mnote.page_ai_runtime_health.v1"

---The latest trouble, the newest first.
---@class acphost.RuntimeLogs
---@field items acphost.LogItem[]
---@field incomplete string|nil Why there may be more of long ago; null: there is not.
---@field schema "mnote.page_ai_runtime_logs.v1"

---`runtime/logs`: of one session, or of all; the latest `limit` of them.
---@class acphost.RuntimeLogsParams
---@field sessionId? string|nil
---@field limit? integer
---@field _meta? any

---The answer to `runtime/reset`.
---@class acphost.RuntimeReset
---@field sessionId string
---@field mode string
---@field next string
---@field closed acphost.ClosedBinding
---@field queued integer

---`runtime/reset`: what the next run begins with: the history, or the agent's own memory.
---@class acphost.RuntimeResetParams
---@field sessionId string
---@field next? "cold"|"continue"
---@field _meta? any

---The answer to `runtime/start`: the agent is there, and this is how it came to the session.
---@class acphost.RuntimeStarted
---@field sessionId string
---@field acpSessionId string
---@field mode string

---Which agent, is the context continuous, why is it still busy: one snapshot.
---@class acphost.RuntimeStatus
---@field mnoteSessionId string
---@field runtime string
---@field profile string
---@field mode acphost.Mode
---@field status acphost.SessionStatus
---@field statusReason string|nil
---@field continuity acphost.Continuity
---@field activeRun acphost.ActiveRunStatus|nil
---@field acp acphost.AcpStatus|nil
---@field model acphost.ModelStatus
---@field roots acphost.Counts
---@field mcp acphost.McpStatus
---@field tools acphost.ToolCounts
---@field queue acphost.QueueStatus
---@field jobs acphost.Jobs
---@field lastSignOfLifeAt string|nil
---@field usage acphost.UsageStatus
---@field coldResume acphost.ColdResume
---@field logs string[]
---@field chat acphost.ChatStatus|nil
---@field schema "mnote.page_ai_runtime_status.v1"

---A list answer with a `RuntimeStatus` each.
---@class acphost.RuntimeStatusPage
---@field items acphost.RuntimeStatus[]
---@field nextCursor string|nil

---`runtime/status`: one session's, or all.
---@class acphost.RuntimeStatusParams
---@field sessionId? string|nil
---@field workspaceId? string|nil
---@field documentId? string|nil
---@field _meta? any

---What the runtime itself takes.
---@class acphost.RuntimeUsage
---@field reserved acphost.Reserved

---Which events a subscription sees: exactly one member is given.
---@class acphost.Scope
---@field sessionId? string|nil
---@field hostRunId? string|nil
---@field workspaceId? string|nil
---@field all? true|nil
---@field _meta? any

---A conversation of the host.
---@class acphost.Session
---@field sessionId string
---@field title string|nil
---@field agentId string
---@field runtime string
---@field profile string
---@field resolvedModel string|nil
---@field workspaceId string
---@field cwd string
---@field documentId string|nil
---@field actorId string
---@field pinned boolean
---@field status acphost.SessionStatus
---@field statusReason string|nil
---@field mode acphost.Mode
---@field acpSessionId string|nil
---@field activeRunId string|nil
---@field queuedCount integer
---@field lastRunStatus acphost.RunStatus|nil
---@field lastSeq string
---@field createdAt string
---@field updatedAt string
---@field schema "mnote.ai_session.v1"
---@field runtimeGroup string|nil
---@field activePinned boolean
---@field recovery acphost.Recovery|nil
---@field agentMode string|nil The agent's own mode; `mode` tells how its context came about.
---@field settable? acphost.Control[] What can be set by `session/configure`; only where one session is asked for.
---@field login acphost.Login|nil While the status is `auth_required`: which logins the agent offers.
---@field policy acphost.PolicyRule[] The rules that answer for a person in this session, before those of the configuration.

---`session/adopt`: a session of ours that goes on with one of the agent's.
---@class acphost.SessionAdoptParams
---@field agentId string
---@field acpSessionId string
---@field cwd string
---@field title? string|nil
---@field profile? string|nil
---@field workspaceId? string|nil
---@field start? boolean
---@field _meta? any

---`session/configure`: absent is left as it is, null forgets the choice.
---@class acphost.SessionConfigureParams
---@field sessionId string
---@field agentId? string Another agent: it is told the history. Only while nothing runs or waits.
---@field profile? string
---@field mode? string|nil
---@field model? string|nil
---@field configOption? table<string, string|boolean|nil> By the ids of the options.
---@field mcpServers? any[] All servers of the session's own: an agent that can go on with its session is opened anew with them before the next prompt, another has them from its next start.
---@field _meta? any

---`session/create`: records only, unless `start`.
---@class acphost.SessionCreateParams
---@field agentId string
---@field cwd string
---@field profile? string|nil
---@field workspaceId? string|nil
---@field title? string|nil
---@field documentId? string|nil
---@field additionalDirectories? string[]
---@field mcpServers? any[]
---@field policy? acphost.PolicyRule[] Rules of this session alone; looked at before those of the configuration.
---@field start? boolean
---@field _meta? any

---`session/delete`: the agent's own session only with `confirm`, which repeats the id.
---@class acphost.SessionDeleteParams
---@field sessionId string
---@field deleteExternalProviderSession? boolean
---@field confirm? string|nil
---@field _meta? any

---The answer to `session/delete`.
---@class acphost.SessionDeleted
---@field sessionId string
---@field deleted boolean
---@field external acphost.ExternalDeletion

---`session/discover`: the sessions an agent keeps, of one folder or of all.
---@class acphost.SessionDiscoverParams
---@field agentId string
---@field cwd? string|nil
---@field _meta? any

---`session/fork`: a session that begins with what this one has said.
---@class acphost.SessionForkParams
---@field sessionId string
---@field title? string|nil
---@field start? boolean
---@field _meta? any

---`session/list`: filters are joined by and.
---@class acphost.SessionListParams
---@field workspaceId? string|nil
---@field documentId? string|nil
---@field runtime? string|nil
---@field agentId? string|nil
---@field profile? string|nil
---@field model? string|nil
---@field status? "active"|"auth_required"|"cold_resumed"|"completed"|"failed"|"held"|"idle"|"load_failed_new"|"loaded"|"native_live"|"new_session"|"quiet"|"replay_seen"|"resumed"|"running"|"starting"|"stopping"|"waiting"|nil
---@field pinned? boolean|nil
---@field cursor? string|nil
---@field limit? integer
---@field _meta? any

---A list answer with a `Session` each.
---@class acphost.SessionPage
---@field items acphost.Session[]
---@field nextCursor string|nil

---Methods about one session.
---@class acphost.SessionParams
---@field sessionId string
---@field _meta? any

---`session/pin`: a pinned session is not deleted by retention.
---@class acphost.SessionPinParams
---@field sessionId string
---@field pinned? boolean
---@field _meta? any

---`session/rename`: null leaves the title to the agent.
---@class acphost.SessionRenameParams
---@field sessionId string
---@field title string|nil
---@field _meta? any

---What a session is doing, strongest word first where several are true.
---@alias acphost.SessionStatus
---| "failed"
---| "auth_required"
---| "waiting"
---| "quiet"
---| "stopping"
---| "running"
---| "starting"
---| "held"
---| "idle"

---What all turns of a session have used together.
---@class acphost.SessionUsage
---@field tokens integer|nil
---@field cost string|nil
---@field cacheHit integer|nil
---@field carryover integer|nil Of the tokens, those from before the agent's present process.
---@field prompt integer|nil
---@field completion integer|nil

---How much a finding matters.
---@alias acphost.Severity
---| "ok"
---| "warning"
---| "problem"

---`host/shutdown`: drains like a SIGTERM; `force` cancels like the second one.
---@class acphost.ShutdownParams
---@field force? boolean
---@field _meta? any

---Whether events can be kept.
---@class acphost.StoreHealth
---@field state string
---@field reason string|nil
---@field since string|nil

---`events/subscribe`: neither `after…` means from the start.
---@class acphost.SubscribeParams
---@field scope acphost.Scope
---@field afterSeq? integer|string
---@field afterOffset? integer|string
---@field after? "now"
---@field storeId? string|nil
---@field kinds? string[]|nil
---@field maxLatencyMs? integer|nil
---@field view? "events"
---@field _meta? any

---The answer to `events/subscribe`; the events follow as notifications.
---@class acphost.Subscribed
---@field subscriptionId string
---@field headSeq string|nil
---@field headOffset string

---What a client runs in a terminal: the agent's own command with more arguments.
---@class acphost.TerminalLogin
---@field command string[]
---@field args string[]
---@field env table<string, string> The agent's own variables for this; they go before all others.
---@field configured string[] Variables that the configuration sets for the agent; their values stay there.

---Host tools offered to the agent.
---@class acphost.ToolCounts
---@field enabled integer
---@field disabled integer

---What went wrong with an agent, or was not let through.
---@alias acphost.Trouble
---| "acp_stderr"
---| "tool_failed"
---| "permission_denied"
---| "mcp_failed"

---`events/unsubscribe`.
---@class acphost.UnsubscribeParams
---@field subscriptionId string
---@field _meta? any

---`usage/get`: of a run, or of a session and its last run.
---@class acphost.UsageGetParams
---@field sessionId? string|nil
---@field hostRunId? string|nil
---@field _meta? any

---The answer to `usage/get`: a run, its session, and the context, kept apart.
---@class acphost.UsageProjection
---@field sessionId string
---@field hostRunId string|nil
---@field run acphost.RunUsage
---@field session acphost.SessionUsage
---@field context acphost.ContextSize
---@field coldResume acphost.ColdResumeUsage
---@field byModel acphost.ModelUsage[]
---@field runtime acphost.RuntimeUsage
---@field balance string|nil
---@field schema "mnote.page_ai_usage_projection.v1"

---Part of the runtime status; unknown is null, never 0.
---@class acphost.UsageStatus
---@field sessionTokens integer|nil
---@field lastRunTokens integer|nil
---@field context acphost.ContextUsage
---@field cost string|nil

---`fs/write_text_file`.
---@class acphost.WriteTextFile
---@field sessionId string
---@field path string
---@field content string

---The answer to `fs/write_text_file`: that it came says all.
---@class acphost.WriteTextFileResult

---`initialize` Introduces a client: the first request of every connection.
---@alias acphost.params.initialize acphost.InitializeParams
---@alias acphost.result.initialize acphost.InitializeResult

---`host/ping` Whether the daemon is alive, and since when.
---@alias acphost.params.host.ping acphost.NoParams
---@alias acphost.result.host.ping acphost.Pong

---`host/stats` Figures of the daemon: its clients, agents, journal and configuration.
---@alias acphost.params.host.stats acphost.NoParams
---@alias acphost.result.host.stats table<string, any>

---`host/schema` The JSON Schema of all that the socket takes, returns and says.
---@alias acphost.params.host.schema acphost.NoParams
---@alias acphost.result.host.schema table<string, any>

---`host/reload` Reads the configuration again.
---@alias acphost.params.host.reload acphost.NoParams
---@alias acphost.result.host.reload acphost.Reloaded

---`host/backup` `path` is absolute; what is there stays unless `force`.
---@alias acphost.params.host.backup acphost.BackupParams
---@alias acphost.result.host.backup acphost.BackupDone

---`host/retention` Deletes by the configured rules; a dry run only tells.
---@alias acphost.params.host.retention acphost.RetentionParams
---@alias acphost.result.host.retention acphost.RetentionDone

---`host/shutdown` Drains like a SIGTERM; `force` cancels like the second one.
---@alias acphost.params.host.shutdown acphost.ShutdownParams
---@alias acphost.result.host.shutdown acphost.Done

---`agent/list` The configured agents, and whether they can be started.
---@alias acphost.params.agent.list acphost.AgentListParams
---@alias acphost.result.agent.list acphost.AgentList

---`agent/get` One configured agent.
---@alias acphost.params.agent.get acphost.AgentParams
---@alias acphost.result.agent.get acphost.AgentDescriptor

---`agent/check` What can be told of an agent without starting it, each finding with its cure.
---@alias acphost.params.agent.check acphost.AgentParams
---@alias acphost.result.agent.check acphost.AgentCheck

---`agent/authenticate` Logs in to an agent by one of its methods; sessions that waited for it go on.
---@alias acphost.params.agent.authenticate acphost.AgentAuthenticateParams
---@alias acphost.result.agent.authenticate acphost.AgentLogin

---`agent/logout` Logs out of an agent, where it offers that.
---@alias acphost.params.agent.logout acphost.AgentParams
---@alias acphost.result.agent.logout acphost.AgentLogin

---`agent/probe` Try an agent out in a scratch folder; minutes where its model is slow.
---@alias acphost.params.agent.probe acphost.AgentProbeParams
---@alias acphost.result.agent.probe acphost.AgentProbe

---`session/create` Opens a session; it is only recorded, the agent starts at first need or with `start`.
---@alias acphost.params.session.create acphost.SessionCreateParams
---@alias acphost.result.session.create acphost.Session

---`session/list` The sessions; filters are joined by and.
---@alias acphost.params.session.list acphost.SessionListParams
---@alias acphost.result.session.list acphost.SessionPage

---`session/get` One session.
---@alias acphost.params.session.get acphost.SessionParams
---@alias acphost.result.session.get acphost.Session

---`session/configure` Sets the agent's mode, model or options; absent is left as it is, null forgets.
---@alias acphost.params.session.configure acphost.SessionConfigureParams
---@alias acphost.result.session.configure acphost.Session

---`session/rename` Gives a session a title of its own; null leaves it to the agent.
---@alias acphost.params.session.rename acphost.SessionRenameParams
---@alias acphost.result.session.rename acphost.Session

---`session/pin` Keeps a session whatever the rules of retention say, or no longer.
---@alias acphost.params.session.pin acphost.SessionPinParams
---@alias acphost.result.session.pin acphost.Session

---`session/delete` Deletes a session here, and on request also where the agent keeps it.
---@alias acphost.params.session.delete acphost.SessionDeleteParams
---@alias acphost.result.session.delete acphost.SessionDeleted

---`session/discover` The sessions that an agent keeps itself, and which of them are known here.
---@alias acphost.params.session.discover acphost.SessionDiscoverParams
---@alias acphost.result.session.discover acphost.Discovered

---`session/adopt` A session that goes on with one the agent keeps; the one there is, if there is one.
---@alias acphost.params.session.adopt acphost.SessionAdoptParams
---@alias acphost.result.session.adopt acphost.Session

---`session/fork` A session that begins with what this one has said, and goes its own way.
---@alias acphost.params.session.fork acphost.SessionForkParams
---@alias acphost.result.session.fork acphost.Session

---`session/activeRun` What a client that comes back asks first: the run that is not over, and the queue.
---@alias acphost.params.session.activeRun acphost.ActiveRunParams
---@alias acphost.result.session.activeRun acphost.ActiveRun

---`run/create` Sends a prompt, or queues it while the agent is busy; repeated, it is the same run.
---@alias acphost.params.run.create acphost.RunCreateParams
---@alias acphost.result.run.create acphost.Run

---`run/get` One run; `include` adds its envelope.
---@alias acphost.params.run.get acphost.RunGetParams
---@alias acphost.result.run.get acphost.Run

---`run/list` The runs, newest first.
---@alias acphost.params.run.list acphost.RunListParams
---@alias acphost.result.run.list acphost.RunPage

---`run/events` A page of a run's events: greater seqs only, oldest first.
---@alias acphost.params.run.events acphost.RunEventsParams
---@alias acphost.result.run.events acphost.EventsPage

---`run/wait` Answers when the run is over, or with the run as it is after `timeoutMs`.
---@alias acphost.params.run.wait acphost.RunWaitParams
---@alias acphost.result.run.wait acphost.Run

---`run/cancel` Stops a run; answers at once, `run/wait` tells the end.
---@alias acphost.params.run.cancel acphost.RunCancelParams
---@alias acphost.result.run.cancel acphost.Run

---`run/resume` A second try of an interrupted run, made once for each `resumeRequestId`.
---@alias acphost.params.run.resume acphost.RunResumeParams
---@alias acphost.result.run.resume acphost.Run

---`run/dismiss` Says that an interrupted run has been seen and is not to be resumed.
---@alias acphost.params.run.dismiss acphost.RunParams
---@alias acphost.result.run.dismiss acphost.Run

---`queue/list` The runs of a session that wait, head first.
---@alias acphost.params.queue.list acphost.QueueListParams
---@alias acphost.result.queue.list acphost.QueuedRunPage

---`queue/edit` Gives a run that waits another prompt; `conflict` if it changed meanwhile, or started.
---@alias acphost.params.queue.edit acphost.QueueEditParams
---@alias acphost.result.queue.edit acphost.QueuedRun

---`queue/move` Gives a run that waits another place; `conflict` if it changed meanwhile, or started.
---@alias acphost.params.queue.move acphost.QueueMoveParams
---@alias acphost.result.queue.move acphost.QueuedRun

---`queue/hold` Lets nothing more of a session's queue start; the running turn goes on.
---@alias acphost.params.queue.hold acphost.QueueHoldParams
---@alias acphost.result.queue.hold acphost.Session

---`queue/release` Lets a held queue go on.
---@alias acphost.params.queue.release acphost.SessionParams
---@alias acphost.result.queue.release acphost.Session

---`events/subscribe` Follows a session, a run or all; the events come as notifications.
---@alias acphost.params.events.subscribe acphost.SubscribeParams
---@alias acphost.result.events.subscribe acphost.Subscribed

---`events/unsubscribe` Ends a subscription of this connection.
---@alias acphost.params.events.unsubscribe acphost.UnsubscribeParams
---@alias acphost.result.events.unsubscribe acphost.Done

---`permission/list` The decisions; pending ones unless a status is named.
---@alias acphost.params.permission.list acphost.PermissionListParams
---@alias acphost.result.permission.list acphost.DecisionPage

---`permission/respond` Answers an agent's question with one of the offered options; the first answer counts.
---@alias acphost.params.permission.respond acphost.PermissionRespondParams
---@alias acphost.result.permission.respond acphost.Decision

---`elicitation/respond` Answers a form or an address of an agent; the first valid answer wins.
---@alias acphost.params.elicitation.respond acphost.ElicitationRespondParams
---@alias acphost.result.elicitation.respond acphost.Decision

---`runtime/status` Which agent serves a session, whether it remembers, why it is busy.
---@alias acphost.params.runtime.status acphost.RuntimeStatusParams
---@alias acphost.result.runtime.status acphost.RuntimeStatus|acphost.RuntimeStatusPage

---`runtime/start` Has a session's agent started, and answers when it is there; or why it cannot be had.
---@alias acphost.params.runtime.start acphost.SessionParams
---@alias acphost.result.runtime.start acphost.RuntimeStarted

---`runtime/reset` Ends a session's agent; `next` says what the next run begins with.
---@alias acphost.params.runtime.reset acphost.RuntimeResetParams
---@alias acphost.result.runtime.reset acphost.RuntimeReset

---`runtime/logs` What went wrong lately: complaints of agents, failed tools, refused permissions.
---@alias acphost.params.runtime.logs acphost.RuntimeLogsParams
---@alias acphost.result.runtime.logs acphost.RuntimeLogs

---`runtime/health` What the daemon rests on: whether agents can be started and events be kept.
---@alias acphost.params.runtime.health acphost.NoParams
---@alias acphost.result.runtime.health acphost.RuntimeHealth

---`runtime/processes` The agents' processes and what they have started, with memory and age.
---@alias acphost.params.runtime.processes acphost.ProcessesParams
---@alias acphost.result.runtime.processes acphost.ProcessRecordPage

---`usage/get` Context, turn and session kept apart; of a run, or of a session and its last run.
---@alias acphost.params.usage.get acphost.UsageGetParams
---@alias acphost.result.usage.get acphost.UsageProjection

---`job/list` The commands that agents run through the host now.
---@alias acphost.params.job.list acphost.JobListParams
---@alias acphost.result.job.list acphost.Page

---`job/stop` End a command; its agent goes on, and sees how it ended.
---@alias acphost.params.job.stop acphost.JobParams
---@alias acphost.result.job.stop acphost.Job

---`job/stopAll` End every command that runs, of one session or of all.
---@alias acphost.params.job.stopAll acphost.JobStopAllParams
---@alias acphost.result.job.stopAll acphost.JobsStopped

---`grant/list` The folders that the actor lets agents use beside those of their sessions.
---@alias acphost.params.grant.list acphost.NoParams
---@alias acphost.result.grant.list acphost.Page

---`grant/add` Let agents use a folder in all sessions of the actor, to read only or also to write.
---@alias acphost.params.grant.add acphost.GrantAddParams
---@alias acphost.result.grant.add acphost.Grant

---`grant/remove` Take a folder back; the answer is what was granted.
---@alias acphost.params.grant.remove acphost.GrantRemoveParams
---@alias acphost.result.grant.remove acphost.Grant
