// Made by `acphost schema --ts` from the daemon's own types: change those, not this.
/* eslint-disable */

export const schemaRevision = "1-f2ff6fd2e917";
export const protocolVersion = 1;
/** The kinds of event that end a run. */
export const terminalKinds: readonly Kind[] = ["run.cancelled", "run.completed", "run.failed", "run.interrupted"];

/** `error.data.code`: what programs match on; a newer daemon may know more of them. */
export type ErrorCode =
  | "agent_error"
  | "agent_not_found"
  | "agent_unavailable"
  | "already_resolved"
  | "auth_required"
  | "confirmation_required"
  | "conflict"
  | "cursor_foreign"
  | "cursor_future"
  | "cursor_malformed"
  | "internal"
  | "invalid_params"
  | "invalid_request"
  | "method_not_found"
  | "not_initialized"
  | "overloaded"
  | "parse_error"
  | "path_not_granted"
  | "permission_denied"
  | "permission_not_found"
  | "queue_full"
  | "run_not_found"
  | "session_not_found"
  | "shutting_down"
  | "storage_error"
  | "storage_full"
  | "too_large"
  | "unsupported_content"
  | "unsupported_version"
  | (string & {});

/** Part of the runtime status: the agent's side of the conversation. */
export interface AcpStatus {
  acpSessionId: string | null;
  supportsSessionLoad: boolean | null;
  supportsResume: boolean | null;
  loadAttempted: boolean;
  loadStatus: string | null;
  replaySeen: boolean;
  replaySeq: string | null;
  replayMessageCount: number;
  liveBinding: LiveBinding | null;
}

/** What a client that comes back asks first. */
export interface ActiveRun {
  run: Run | null;
  queued: QueuedRun[];
  lastSeq: string;
  schema: "mnote.ai_active_run.v1";
}

/** `session/activeRun`. */
export interface ActiveRunParams {
  sessionId: string;
  workspaceId?: string | null;
  documentId?: string | null;
  _meta?: unknown;
}

/** Part of the runtime status. */
export interface ActiveRunStatus {
  runId: string;
  status: RunStatus;
}

/** `agent/authenticate`: without a method it tells which there are. */
export interface AgentAuthenticateParams {
  agentId: string;
  methodId?: string | null;
  /** The program of a terminal login was run and ended well. */
  completed?: boolean;
  _meta?: unknown;
}

/** What can be told of an agent without starting it. */
export interface AgentCheck {
  agentId: string;
  /** Whether it could be started now. */
  ready: boolean;
  launch: string[];
  /** What it said when it was last started; null if it never was. */
  version: string | null;
  findings: Finding[];
  schema: "mnote.ai_agent_check.v1";
}

/** A configured agent. */
export interface AgentDescriptor {
  agentId: string;
  displayName: string;
  provider: string;
  runtime: string;
  acpRuntime: boolean;
  health: AgentHealth;
  /** What was found when it was last tried out; null if it never was. */
  probe: AgentProbe | null;
  schema: "mnote.ai_agent_descriptor.v1";
}

/** Can this agent be started here. */
export interface AgentHealth {
  installed: boolean;
  version: string | null;
  launch: string[];
  /** What may surprise is among them: only `state` says whether runs can go there. */
  problems: string[];
  /** ready, not_ready, or failed: too often to be started now. */
  state: string;
}

/** All configured agents. */
export interface AgentList {
  actorId: string;
  agents: AgentDescriptor[];
  schema: "mnote.ai_agent_descriptors.v1";
  /** The agent of those who name none, if one is configured. */
  defaultAgent: string | null;
}

/** `agent/list`. */
export interface AgentListParams {
  profile?: string | null;
  _meta?: unknown;
}

/** What came of it: `choose`, `terminal`, `authenticated`, or `logged_out`. */
export interface AgentLogin {
  agentId: string;
  status: string;
  methods: AuthChoice[];
  methodId: string | null;
  terminal: TerminalLogin | null;
  /** The sessions that had waited for it, and go on now. */
  sessions: string[];
}

/** `agent/get` and `agent/check`. */
export interface AgentParams {
  agentId: string;
  _meta?: unknown;
}

/** How an agent behaved when it was tried out. */
export interface AgentProbe {
  agentId: string;
  name: string;
  version: string;
  at: string;
  results: PromiseResult[];
  schema: "mnote.ai_agent_probe.v1";
}

/** `agent/probe`: runs the agent in a scratch folder. */
export interface AgentProbeParams {
  agentId: string;
  /** Two short prompts to its model; without them half of the promises cannot be tried. */
  prompts?: boolean;
  _meta?: unknown;
}

/** A way to log in that an agent offers. */
export interface AuthChoice {
  id: string;
  name: string;
  /** `agent`, `terminal`, or whatever else an agent says. */
  type: string;
  description: string | null;
}

/** The answer to `host/backup`. */
export interface BackupDone {
  path: string;
  bytes: number;
  durationMs: number;
  /** How many files of secrets are in it. */
  secrets: number;
}

/** `host/backup`: `path` is absolute; what is there stays unless `force`. */
export interface BackupParams {
  path: string;
  force?: boolean;
  withSecrets?: boolean;
  _meta?: unknown;
}

/** One file; `before` and `after` are `sha256:` and the digest, null where it is not known. */
export interface ChangedFile {
  path: string;
  change: "created" | "deleted" | "modified";
  /** What changed it, as far as the host can tell; `agent`: while the run was at work. */
  by: "agent" | "fs" | "terminal" | "tool";
  before: string | null;
  after: string | null;
  /** Whether the run is known to have left it so. What only changed while it was at work may be a person's doing, or that of a program which somebody else runs. */
  certain: boolean;
}

/** Part of the runtime status: what a chat endpoint keeps of the conversation itself. */
export interface ChatStatus {
  providerConversationId: string | null;
  remoteDeleteStatus: string;
}

/** What a client can do; members that are not known here are ignored. */
export interface ClientCapabilities {
  fs?: FileOffers;
  /** It will put agents' questions to a person. */
  permissions?: boolean;
  /** It will show agents' forms to a person. */
  elicitation?: boolean;
}

/** Who connects; shown to other clients as the origin of what it did. */
export interface ClientInfo {
  name: string;
  version?: string | null;
  title?: string | null;
}

/** Which binding a reset ended, and in which process; null where there was none. */
export interface ClosedBinding {
  binding: string | null;
  pid: number | null;
}

/** Part of the runtime status: the history packet of the last cold resume. */
export interface ColdResume {
  packetBytes: number | null;
  truncatedReason: string | null;
}

/** The history packet of the last cold resume. */
export interface ColdResumeUsage {
  packetBytes: number | null;
  truncatedReason: string | null;
}

/** How much is in the agent's context, as it said last. */
export interface ContextSize {
  used: number | null;
  size: number | null;
}

/** Tokens in the agent's context, as it said last. */
export interface ContextUsage {
  used: number | null;
  size: number | null;
}

/** Part of the runtime status: does the agent remember, and why not. */
export interface Continuity {
  mode: Mode;
  code: ContinuityCode;
  reason: string | null;
}

/** Whether the agent remembers. */
export type ContinuityCode =
  | "continuous"
  | "history_fallback"
  | "no_context"
  | "load_failed_new";

/** Something that can be set; `key` is `mode`, `model` or the id of a config option. */
export interface Control {
  key: string;
  /** `select` or `boolean`. */
  kind: string;
  name: string;
  description: string | null;
  category: string | null;
  /** As the agent said last; null where it did not say. */
  value: string | boolean | null;
  /** What a person chose, and what is set again after the agent was started anew. */
  chosen: string | boolean | null;
  choices: ControlChoice[];
}

/** A value on offer. */
export interface ControlChoice {
  value: string;
  name: string;
  description: string | null;
  group: string | null;
}

/** Roots opened to the agent. */
export interface Counts {
  write: number;
  readOnly: number;
}

/** The last row a subscription has scanned. */
export interface Cursor {
  offset: string;
  seq?: string | null;
}

/** A question an agent put to people. */
export interface Decision {
  permissionId: string;
  kind: string;
  sessionId: string;
  hostRunId: string | null;
  toolCallKey: string | null;
  options: PermissionOption[];
  status: "expired" | "pending" | "resolved";
  outcome: string | null;
  optionId: string | null;
  by: Origin | null;
  rule: string | null;
  createdAt: string;
  resolvedAt: string | null;
  expiresAt: string | null;
  schema: "mnote.ai_decision.v1";
  request: unknown;
}

/** A list answer with a `Decision` each. */
export interface DecisionPage {
  items: Decision[];
  nextCursor: string | null;
}

/** A process that an agent started, or that one of those did. */
export interface Descendant {
  pid: number;
  command: string;
  memoryBytes: number;
  ageMs: number;
}

/** The answer to `session/discover`. */
export interface Discovered {
  agentId: string;
  /** Whether the agent can list its sessions at all. */
  supported: boolean;
  sessions: DiscoveredSession[];
  /** Why the list is not whole; null if it is. */
  problem: string | null;
}

/** A session in an agent's own list. */
export interface DiscoveredSession {
  acpSessionId: string;
  cwd: string;
  title: string | null;
  updatedAt: string | null;
  /** The session of ours that is tied to it. */
  sessionId: string | null;
}

/** The answer of methods that have nothing to return. */
export interface Done {
  ok: boolean;
}

/** `elicitation/respond`: `content` is the filled-in form, only with `accept`. */
export interface ElicitationRespondParams {
  elicitationId: string;
  action: "accept" | "cancel" | "decline";
  content?: unknown;
  _meta?: unknown;
}

/** Why a request failed; `data.code` is the word to match on. */
export interface ErrorObject {
  code: number;
  /** An English sentence for people. */
  message: string;
  data?: { code?: "agent_error" | "agent_not_found" | "agent_unavailable" | "already_resolved" | "auth_required" | "confirmation_required" | "conflict" | "cursor_foreign" | "cursor_future" | "cursor_malformed" | "internal" | "invalid_params" | "invalid_request" | "method_not_found" | "not_initialized" | "overloaded" | "parse_error" | "path_not_granted" | "permission_denied" | "permission_not_found" | "queue_full" | "run_not_found" | "session_not_found" | "shutting_down" | "storage_error" | "storage_full" | "too_large" | "unsupported_content" | "unsupported_version" | string; retryable?: boolean };
}

/** One journal row as clients read it; a provider's `payload` is its own JSON, verbatim. */
export interface Event {
  schema: string;
  offset: string;
  sessionId: string | null;
  seq: string | null;
  hostRunId: string | null;
  kind: Kind;
  /** "mnote": the host itself; "tool"; else the kind of agent: "hermes", "reasonix", "acp", "chat_only", "api_chat", or a word of the user's own runtimes. */
  source: string;
  createdAt: string;
  payload?: unknown;
  origin?: Origin;
  host?: unknown;
  synthetic?: boolean;
  payloadBase64?: string | null;
}

/** A batch for one subscription. */
export interface EventsNotification {
  subscriptionId: string;
  events: Event[];
  cursor: Cursor;
  caughtUp?: boolean;
}

/** The answer to `run/events`; events are as on the wire. */
export interface EventsPage {
  events: Event[];
  headSeq: string;
  hasMore: boolean;
}

/** What became of the agent's own session. */
export interface ExternalDeletion {
  requested: boolean;
  /** `not_requested`, `deleted`, `unsupported` or `failed`. */
  status: string;
  error: string | null;
}

/** What a client does with files for agents, asked by the requests of that name. */
export interface FileOffers {
  /** It knows of text that is not saved yet. */
  readTextFile?: boolean;
  /** It takes text into its buffer and saves it. */
  writeTextFile?: boolean;
}

/** One thing that was looked at, and what to do about it. */
export interface Finding {
  code: string;
  severity: Severity;
  message: string;
  cure: string | null;
}

/** A folder, and what may be done below it in the sessions of an actor. */
export interface Grant {
  grantId: string;
  actorId: string;
  path: string;
  access: "read" | "write";
  createdAt: string;
}

/** `grant/add`: an absolute path to a folder that exists. */
export interface GrantAddParams {
  path: string;
  access?: "read" | "write";
  _meta?: unknown;
}

/** `grant/remove`. */
export interface GrantRemoveParams {
  grantId: string;
  _meta?: unknown;
}

/** Which daemon this is. */
export interface HostInfo {
  name: string;
  version: string;
  pid: number;
}

/** First request of a connection. Unknown keys are ignored here, and only here. */
export interface InitializeParams {
  protocolVersion?: number | null;
  protocolVersions?: number[] | null;
  clientInfo?: ClientInfo | null;
  clientId?: string | null;
  actorId?: string | null;
  capabilities?: ClientCapabilities;
}

/** The answer to a client's first request. */
export interface InitializeResult {
  protocolVersion: number;
  schemaRevision: string;
  hostInfo: HostInfo;
  storeId: string;
  clientId: string;
  actorId: string;
  role: string;
  capabilities: Record<string, boolean>;
  limits: Limits;
}

/** A command that an agent runs through the host, until the agent has done with it. */
export interface Job {
  jobId: string;
  title: string;
  status: "completed" | "failed" | "running";
  sessionId: string;
  hostRunId: string | null;
}

/** `job/list`: those of one session, or all. */
export interface JobListParams {
  sessionId?: string | null;
  _meta?: unknown;
}

/** `job/stop`. */
export interface JobParams {
  jobId: string;
  _meta?: unknown;
}

/** `job/stopAll`: those of one session, or all. */
export interface JobStopAllParams {
  sessionId?: string | null;
  _meta?: unknown;
}

/** Background jobs of a session. */
export interface Jobs {
  running: number;
  items: unknown[];
}

/** The answer to `job/stopAll`. */
export interface JobsStopped {
  stopped: number;
  message: string;
}

/** What an event says. */
export type Kind =
  | "session.created"
  | "session.info.updated"
  | "session.mode.updated"
  | "session.config.updated"
  | "session.commands.updated"
  | "session.renamed"
  | "session.reset"
  | "session.deleted"
  | "binding.started"
  | "binding.resumed"
  | "binding.loaded"
  | "binding.load_failed"
  | "binding.cold_resumed"
  | "binding.lost"
  | "binding.closed"
  | "run.created"
  | "run.queued"
  | "run.started"
  | "run.cancel_requested"
  | "run.completed"
  | "run.failed"
  | "run.cancelled"
  | "run.interrupted"
  | "run.dismissed"
  | "queue.changed"
  | "queue.held"
  | "queue.released"
  | "message.user"
  | "message.delta"
  | "thought.delta"
  | "plan.updated"
  | "usage.updated"
  | "tool.started"
  | "tool.updated"
  | "tool.completed"
  | "tool.failed"
  | "permission.requested"
  | "permission.resolved"
  | "permission.expired"
  | "elicitation.requested"
  | "elicitation.resolved"
  | "elicitation.expired"
  | "notice"
  | "compaction.updated"
  | "changed_files"
  | "document.changed"
  | "job.started"
  | "job.updated"
  | "job.ended"
  | "mcp.status"
  | "agent.stderr"
  | "error"
  | "evidence"
  | "host.started"
  | "host.stopping"
  | "config.reloaded"
  | "config.rejected"
  | "storage.degraded"
  | "storage.warning"
  | "storage.recovered"
  | "agent.state";

/** What a connection may do. */
export interface Limits {
  maxLineBytes: number;
  maxInFlight: number;
}

/** The agent process that serves a session now. */
export interface LiveBinding {
  status: string;
  workspaceKey: string;
  pid: number | null;
}

/** One piece of trouble. */
export interface LogItem {
  at: string;
  kind: Trouble;
  sessionId: string;
  hostRunId: string | null;
  agentId: string;
  text: string;
}

/** What a session waits for, as part of it. */
export interface Login {
  agentId: string;
  message: string;
  methods: AuthChoice[];
}

/** MCP servers passed to the agent. */
export interface McpStatus {
  status: string;
  toolCount: number | null;
  failed: string[];
}

/** How a session's context reached the agent that serves it now. */
export type Mode =
  | "native_live"
  | "resumed"
  | "loaded"
  | "replay_seen"
  | "load_failed_new"
  | "cold_resumed"
  | "new_session"
  | "server_transcript";

/** Part of the runtime status: which model, from where. */
export interface ModelStatus {
  profileId: string;
  resolvedModel: string | null;
  providerKind: string;
  credentialStatus: string;
  configSource: string;
  runtimeBinary: string | null;
}

/** The share of one model. */
export interface ModelUsage {
  model: string | null;
  tokens: number | null;
  cost: string | null;
}

/** For methods that take none. */
export interface NoParams {
  _meta?: unknown;
}

/** Who caused an event. */
export interface Origin {
  clientId: string;
  actorId: string;
  clientName: string;
}

/** A list answer; items are the area's own records. */
export interface Page {
  items: unknown[];
  nextCursor: string | null;
}

/** `permission/list`: pending ones unless a status is named. */
export interface PermissionListParams {
  sessionId?: string | null;
  status?: "all" | "expired" | "pending" | "resolved";
  cursor?: string | null;
  limit?: number;
  _meta?: unknown;
}

/** One offered answer; the kind is a hint, the id is what counts. */
export interface PermissionOption {
  optionId: string;
  name?: string;
  kind?: string;
}

/** `permission/respond`: one of the offered options. */
export interface PermissionRespondParams {
  permissionId: string;
  optionId: string;
  _meta?: unknown;
}

/** Answers the permission requests that fit all it names; a list fits by any of its entries. */
export interface PolicyRule {
  /** Shown and journaled with each answer it gives. */
  name: string;
  answer: "allow_once" | "ask" | "reject_once";
  /** Ids of agents. */
  agents?: string[];
  /** Kinds of tools, as the protocol has them. */
  kinds?: Array<"delete" | "edit" | "execute" | "fetch" | "move" | "other" | "read" | "search" | "switch_mode" | "think">;
  /** Names of tools, as the agent calls them. */
  tools?: string[];
  /** Folders or files: absolute, from the home with `~`, or below each root of the session. */
  paths?: string[];
  /** How the command begins, word by word: "git status" fits `git status -s`, never `git stash`. */
  commands?: string[];
}

/** The answer to `host/ping`. */
export interface Pong {
  now: string;
  uptimeMs: number;
}

/** An agent process of the ledger with what came of it; memory is each one's own. */
export interface ProcessRecord {
  launchId: string;
  agentId: string;
  /** The session it was started for; null where several share it. */
  sessionId: string | null;
  /** The sessions that are bound to it now. */
  sessionIds: string[];
  pid: number | null;
  /** starting, live, stopping, or left: not seen to end by the daemon that started it. */
  state: string;
  command: string;
  memoryBytes: number | null;
  ageMs: number;
  descendants: Descendant[];
  /** Descendants that run outside the agent's process group. */
  leftGroup: number[];
}

/** A list answer with a `ProcessRecord` each. */
export interface ProcessRecordPage {
  items: ProcessRecord[];
  nextCursor: string | null;
}

/** `runtime/processes`: of one session, or all. */
export interface ProcessesParams {
  sessionId?: string | null;
  _meta?: unknown;
}

/** What a well-behaved agent keeps, each tried by a probe. */
export type Promise =
  | "initialize"
  | "new_session"
  | "unknown_method_refused"
  | "bad_input_survived"
  | "unknown_session_refused"
  | "prompt_answered"
  | "cancel_confirmed"
  | "load"
  | "load_replays_before_its_answer"
  | "resume"
  | "resume_does_not_replay";

/** Whether one promise holds; null: it was not tried, and `note` says why. */
export interface PromiseResult {
  promise: Promise;
  holds: boolean | null;
  note: string | null;
}

/** `queue/edit`: another `prompt` or `text` for a run that waits. `expectedRev` is the `rev` of the item that the change is meant for. */
export interface QueueEditParams {
  hostRunId: string;
  expectedRev: number;
  prompt?: unknown[] | null;
  text?: string | null;
  _meta?: unknown;
}

/** `queue/hold`. */
export interface QueueHoldParams {
  sessionId: string;
  reason?: string | null;
  _meta?: unknown;
}

/** `queue/list`. */
export interface QueueListParams {
  sessionId: string;
  _meta?: unknown;
}

/** `queue/move`: another place for a run that waits, counted as `queue/list` counts. A place past the end is the end; one that is taken by the running turn is the first behind it. */
export interface QueueMoveParams {
  hostRunId: string;
  expectedRev: number;
  position: number;
  _meta?: unknown;
}

/** Part of the runtime status. */
export interface QueueStatus {
  queued: number;
  held: string | null;
}

/** A run that waits, as the queue shows it. */
export interface QueuedRun {
  id: string;
  userId: string;
  workspaceId: string;
  documentId: string | null;
  sessionId: string;
  runId: string;
  runtime: string;
  profile: string;
  acpSessionId: string | null;
  payload: unknown;
  preview: string;
  position: number;
  rev: number;
  status: "cancelled" | "failed" | "queued" | "started";
  heldReason: string | null;
  createdAt: string;
  updatedAt: string;
  schema: "mnote.page_ai_queued_run.v1";
}

/** A list answer with a `QueuedRun` each. */
export interface QueuedRunPage {
  items: QueuedRun[];
  nextCursor: string | null;
}

/** `fs/read_text_file`; `line` counts from 1, `limit` lines. */
export interface ReadTextFile {
  sessionId: string;
  path: string;
  line?: number | null;
  limit?: number | null;
}

/** The answer to `fs/read_text_file`. */
export interface ReadTextFileResult {
  content: string;
}

/** All that a run has changed, as far as it was seen. */
export interface Receipt {
  hostRunId: string;
  changedFiles: ChangedFile[];
  conflict: "external-change-conflict" | "none";
  refresh: Refresh;
  /** Why there may be more; null: there is not. */
  incomplete: string | null;
  schema: "mnote.ai_run_receipt.v1";
}

/** What a person needs to decide about a run whose outcome is unknown. */
export interface Recovery {
  wasRunning: boolean;
  lastSeq: string;
  filesTouched: string[];
  canResume: boolean;
  canLoad: boolean;
  actions: string[];
}

/** What an editor has to look at again. */
export interface Refresh {
  touchesCurrentFile: boolean;
  shouldRefreshEditor: boolean;
  affectedParents: string[];
}

/** The answer to `host/reload`: what counts otherwise now, or what is wrong with the files. */
export interface Reloaded {
  /** Keys as they are written in the files. */
  changed: string[];
  agents: string[];
  /** Keys that count only at the next start. */
  needsRestart: string[];
  files: string[];
  loadedAt: string;
  problem: string | null;
  /** Each with `file`, `key`, `text`, `line`, `column`. */
  mistakes: Record<string, unknown>[];
}

/** What of the context is taken before anybody has spoken. */
export interface Reserved {
  tool: number | null;
  system: number | null;
  context: number | null;
}

/** The answer to `host/retention`: the rules, what went or would go, and what is left. */
export interface RetentionDone {
  dryRun: boolean;
  maxAgeDays: number | null;
  maxBytes: number | null;
  usedBytes: number;
  bytes: number;
  sessions: RetentionItem[];
}

/** A session that retention deleted, or would delete. */
export interface RetentionItem {
  sessionId: string;
  agentId: string;
  title: string | null;
  updatedAt: string;
  bytes: number;
  /** `age` or `size`. */
  cause: string;
}

/** `host/retention`: deletes by the configured rules; a dry run only tells. */
export interface RetentionParams {
  dryRun?: boolean;
  _meta?: unknown;
}

/** One prompt and all that came of it. */
export interface Run {
  hostRunId: string;
  requestId: string;
  agentId: string;
  provider: string;
  profile: string;
  providerRunId: string | null;
  sessionId: string;
  actorId: string;
  workspaceId: string;
  documentId: string | null;
  parentRunId: string | null;
  status: RunStatus;
  queuePosition: number | null;
  stopReason: string | null;
  errorCode: string | null;
  error: string | null;
  empty: boolean;
  continuity: Mode | null;
  acpSessionId: string | null;
  contextRefs: string[];
  targetSnapshotHash: string | null;
  capabilitySnapshotHash: string | null;
  cancelRequestedAt: string | null;
  firstSeq: string | null;
  lastSeq: string | null;
  terminalSeq: string | null;
  dismissedAt: string | null;
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  updatedAt: string;
  schema: "mnote.ai_run.v1";
  recovery: Recovery | null;
  envelope?: unknown;
  /** What it has changed; null in lists, and where nothing was seen to change. */
  receipt: Receipt | null;
}

/** `run/cancel`: answers at once; `run/wait` tells the end. */
export interface RunCancelParams {
  hostRunId: string;
  holdQueue?: boolean;
  _meta?: unknown;
}

/** `run/create`: `sessionId`, or `agentId` and `cwd` for a new session; `prompt` or `text`. */
export interface RunCreateParams {
  requestId: string;
  sessionId?: string | null;
  agentId?: string | null;
  cwd?: string | null;
  prompt?: unknown[] | null;
  text?: string | null;
  contextRefs?: string[];
  profile?: string | null;
  editorTarget?: unknown;
  runTargetSnapshot?: unknown;
  documentId?: string | null;
  workspaceId?: string | null;
  allowedRoots?: unknown;
  holdAfter?: boolean;
  _meta?: unknown;
}

/** `run/events`: greater seqs only, oldest first. */
export interface RunEventsParams {
  hostRunId: string;
  afterSeq?: number | string;
  limit?: number;
  storeId?: string | null;
  raw?: boolean;
  _meta?: unknown;
}

/** `run/get`. */
export interface RunGetParams {
  hostRunId: string;
  include?: "envelope"[];
  _meta?: unknown;
}

/** `run/list`, newest first. */
export interface RunListParams {
  sessionId?: string | null;
  status?: RunStatus | null;
  cursor?: string | null;
  limit?: number;
  _meta?: unknown;
}

/** A list answer with a `Run` each. */
export interface RunPage {
  items: Run[];
  nextCursor: string | null;
}

/** Methods about one run. */
export interface RunParams {
  hostRunId: string;
  _meta?: unknown;
}

/** `run/resume`: a second try of an interrupted run, made once for each `resumeRequestId`. */
export interface RunResumeParams {
  hostRunId: string;
  resumeRequestId: string;
  /** Begin with the host's history instead of what the agent remembers. */
  withHistory?: boolean;
  _meta?: unknown;
}

/** The life of a run; the last four are final. */
export type RunStatus =
  | "pending"
  | "running"
  | "interrupted"
  | "completed"
  | "failed"
  | "cancelled";

/** What one turn has used. */
export interface RunUsage {
  prompt: number | null;
  completion: number | null;
  reasoning: number | null;
  /** Of the prompt, what came from a cache. */
  cache: number | null;
  total: number | null;
  cost: string | null;
}

/** `run/wait`: answers when the run is over, or with the run as it is after `timeoutMs`. */
export interface RunWaitParams {
  hostRunId: string;
  timeoutMs?: number | null;
  _meta?: unknown;
}

/** What the daemon rests on. */
export interface RuntimeHealth {
  agents: AgentCheck[];
  store: StoreHealth;
  /** Null: this daemon has none. */
  mcpBridge: string | null;
  knowledge: string | null;
  schema: "mnote.page_ai_runtime_health.v1";
}

/** The latest trouble, the newest first. */
export interface RuntimeLogs {
  items: LogItem[];
  /** Why there may be more of long ago; null: there is not. */
  incomplete: string | null;
  schema: "mnote.page_ai_runtime_logs.v1";
}

/** `runtime/logs`: of one session, or of all; the latest `limit` of them. */
export interface RuntimeLogsParams {
  sessionId?: string | null;
  limit?: number;
  _meta?: unknown;
}

/** The answer to `runtime/reset`. */
export interface RuntimeReset {
  sessionId: string;
  mode: string;
  next: string;
  closed: ClosedBinding;
  queued: number;
}

/** `runtime/reset`: what the next run begins with: the history, or the agent's own memory. */
export interface RuntimeResetParams {
  sessionId: string;
  next?: "cold" | "continue";
  _meta?: unknown;
}

/** The answer to `runtime/start`: the agent is there, and this is how it came to the session. */
export interface RuntimeStarted {
  sessionId: string;
  acpSessionId: string;
  mode: string;
}

/** Which agent, is the context continuous, why is it still busy: one snapshot. */
export interface RuntimeStatus {
  mnoteSessionId: string;
  runtime: string;
  profile: string;
  mode: Mode;
  status: SessionStatus;
  statusReason: string | null;
  continuity: Continuity;
  activeRun: ActiveRunStatus | null;
  acp: AcpStatus | null;
  model: ModelStatus;
  roots: Counts;
  mcp: McpStatus;
  tools: ToolCounts;
  queue: QueueStatus;
  jobs: Jobs;
  lastSignOfLifeAt: string | null;
  usage: UsageStatus;
  coldResume: ColdResume;
  logs: string[];
  chat: ChatStatus | null;
  schema: "mnote.page_ai_runtime_status.v1";
}

/** A list answer with a `RuntimeStatus` each. */
export interface RuntimeStatusPage {
  items: RuntimeStatus[];
  nextCursor: string | null;
}

/** `runtime/status`: one session's, or all. */
export interface RuntimeStatusParams {
  sessionId?: string | null;
  workspaceId?: string | null;
  documentId?: string | null;
  _meta?: unknown;
}

/** What the runtime itself takes. */
export interface RuntimeUsage {
  reserved: Reserved;
}

/** Which events a subscription sees: exactly one member is given. */
export interface Scope {
  sessionId?: string | null;
  hostRunId?: string | null;
  workspaceId?: string | null;
  all?: true | null;
  _meta?: unknown;
}

/** A conversation of the host. */
export interface Session {
  sessionId: string;
  title: string | null;
  agentId: string;
  runtime: string;
  profile: string;
  resolvedModel: string | null;
  workspaceId: string;
  cwd: string;
  documentId: string | null;
  actorId: string;
  pinned: boolean;
  status: SessionStatus;
  statusReason: string | null;
  mode: Mode;
  acpSessionId: string | null;
  activeRunId: string | null;
  queuedCount: number;
  lastRunStatus: RunStatus | null;
  lastSeq: string;
  createdAt: string;
  updatedAt: string;
  schema: "mnote.ai_session.v1";
  runtimeGroup: string | null;
  activePinned: boolean;
  recovery: Recovery | null;
  /** The agent's own mode; `mode` tells how its context came about. */
  agentMode: string | null;
  /** What can be set by `session/configure`; only where one session is asked for. */
  settable?: Control[];
  /** While the status is `auth_required`: which logins the agent offers. */
  login: Login | null;
  /** The rules that answer for a person in this session, before those of the configuration. */
  policy: PolicyRule[];
}

/** `session/adopt`: a session of ours that goes on with one of the agent's. */
export interface SessionAdoptParams {
  agentId: string;
  acpSessionId: string;
  cwd: string;
  title?: string | null;
  profile?: string | null;
  workspaceId?: string | null;
  start?: boolean;
  _meta?: unknown;
}

/** `session/configure`: absent is left as it is, null forgets the choice. */
export interface SessionConfigureParams {
  sessionId: string;
  /** Another agent: it is told the history. Only while nothing runs or waits. */
  agentId?: string;
  profile?: string;
  mode?: string | null;
  model?: string | null;
  /** By the ids of the options. */
  configOption?: Record<string, string | boolean | null>;
  /** All servers of the session's own: an agent that can go on with its session is opened anew with them before the next prompt, another has them from its next start. */
  mcpServers?: unknown[];
  _meta?: unknown;
}

/** `session/create`: records only, unless `start`. */
export interface SessionCreateParams {
  agentId: string;
  cwd: string;
  profile?: string | null;
  workspaceId?: string | null;
  title?: string | null;
  documentId?: string | null;
  additionalDirectories?: string[];
  mcpServers?: unknown[];
  /** Rules of this session alone; looked at before those of the configuration. */
  policy?: PolicyRule[];
  start?: boolean;
  _meta?: unknown;
}

/** `session/delete`: the agent's own session only with `confirm`, which repeats the id. */
export interface SessionDeleteParams {
  sessionId: string;
  deleteExternalProviderSession?: boolean;
  confirm?: string | null;
  _meta?: unknown;
}

/** The answer to `session/delete`. */
export interface SessionDeleted {
  sessionId: string;
  deleted: boolean;
  external: ExternalDeletion;
}

/** `session/discover`: the sessions an agent keeps, of one folder or of all. */
export interface SessionDiscoverParams {
  agentId: string;
  cwd?: string | null;
  _meta?: unknown;
}

/** `session/fork`: a session that begins with what this one has said. */
export interface SessionForkParams {
  sessionId: string;
  title?: string | null;
  start?: boolean;
  _meta?: unknown;
}

/** `session/list`: filters are joined by and. */
export interface SessionListParams {
  workspaceId?: string | null;
  documentId?: string | null;
  runtime?: string | null;
  agentId?: string | null;
  profile?: string | null;
  model?: string | null;
  status?: "active" | "auth_required" | "cold_resumed" | "completed" | "failed" | "held" | "idle" | "load_failed_new" | "loaded" | "native_live" | "new_session" | "quiet" | "replay_seen" | "resumed" | "running" | "starting" | "stopping" | "waiting" | null;
  pinned?: boolean | null;
  cursor?: string | null;
  limit?: number;
  _meta?: unknown;
}

/** A list answer with a `Session` each. */
export interface SessionPage {
  items: Session[];
  nextCursor: string | null;
}

/** Methods about one session. */
export interface SessionParams {
  sessionId: string;
  _meta?: unknown;
}

/** `session/pin`: a pinned session is not deleted by retention. */
export interface SessionPinParams {
  sessionId: string;
  pinned?: boolean;
  _meta?: unknown;
}

/** `session/rename`: null leaves the title to the agent. */
export interface SessionRenameParams {
  sessionId: string;
  title: string | null;
  _meta?: unknown;
}

/** What a session is doing, strongest word first where several are true. */
export type SessionStatus =
  | "failed"
  | "auth_required"
  | "waiting"
  | "quiet"
  | "stopping"
  | "running"
  | "starting"
  | "held"
  | "idle";

/** What all turns of a session have used together. */
export interface SessionUsage {
  tokens: number | null;
  cost: string | null;
  cacheHit: number | null;
  /** Of the tokens, those from before the agent's present process. */
  carryover: number | null;
  prompt: number | null;
  completion: number | null;
}

/** How much a finding matters. */
export type Severity =
  | "ok"
  | "warning"
  | "problem";

/** `host/shutdown`: drains like a SIGTERM; `force` cancels like the second one. */
export interface ShutdownParams {
  force?: boolean;
  _meta?: unknown;
}

/** Whether events can be kept. */
export interface StoreHealth {
  state: string;
  reason: string | null;
  since: string | null;
}

/** `events/subscribe`: neither `after…` means from the start. */
export interface SubscribeParams {
  scope: Scope;
  afterSeq?: number | string;
  afterOffset?: number | string;
  after?: "now";
  storeId?: string | null;
  kinds?: string[] | null;
  maxLatencyMs?: number | null;
  view?: "events";
  _meta?: unknown;
}

/** The answer to `events/subscribe`; the events follow as notifications. */
export interface Subscribed {
  subscriptionId: string;
  headSeq: string | null;
  headOffset: string;
}

/** What a client runs in a terminal: the agent's own command with more arguments. */
export interface TerminalLogin {
  command: string[];
  args: string[];
  /** The agent's own variables for this; they go before all others. */
  env: Record<string, string>;
  /** Variables that the configuration sets for the agent; their values stay there. */
  configured: string[];
}

/** Host tools offered to the agent. */
export interface ToolCounts {
  enabled: number;
  disabled: number;
}

/** What went wrong with an agent, or was not let through. */
export type Trouble =
  | "acp_stderr"
  | "tool_failed"
  | "permission_denied"
  | "mcp_failed";

/** `events/unsubscribe`. */
export interface UnsubscribeParams {
  subscriptionId: string;
  _meta?: unknown;
}

/** `usage/get`: of a run, or of a session and its last run. */
export interface UsageGetParams {
  sessionId?: string | null;
  hostRunId?: string | null;
  _meta?: unknown;
}

/** The answer to `usage/get`: a run, its session, and the context, kept apart. */
export interface UsageProjection {
  sessionId: string;
  hostRunId: string | null;
  run: RunUsage;
  session: SessionUsage;
  context: ContextSize;
  coldResume: ColdResumeUsage;
  byModel: ModelUsage[];
  runtime: RuntimeUsage;
  balance: string | null;
  schema: "mnote.page_ai_usage_projection.v1";
}

/** Part of the runtime status; unknown is null, never 0. */
export interface UsageStatus {
  sessionTokens: number | null;
  lastRunTokens: number | null;
  context: ContextUsage;
  cost: string | null;
}

/** `fs/write_text_file`. */
export interface WriteTextFile {
  sessionId: string;
  path: string;
  content: string;
}

/** The answer to `fs/write_text_file`: that it came says all. */
export interface WriteTextFileResult {
}

/** What a client calls, by method. */
export interface Methods {
  /** Introduces a client: the first request of every connection. */
  "initialize": { params: InitializeParams; result: InitializeResult };
  /** Whether the daemon is alive, and since when. */
  "host/ping": { params: NoParams; result: Pong };
  /** Figures of the daemon: its clients, agents, journal and configuration. */
  "host/stats": { params: NoParams; result: Record<string, unknown> };
  /** The JSON Schema of all that the socket takes, returns and says. */
  "host/schema": { params: NoParams; result: Record<string, unknown> };
  /** Reads the configuration again. */
  "host/reload": { params: NoParams; result: Reloaded };
  /** `path` is absolute; what is there stays unless `force`. */
  "host/backup": { params: BackupParams; result: BackupDone };
  /** Deletes by the configured rules; a dry run only tells. */
  "host/retention": { params: RetentionParams; result: RetentionDone };
  /** Drains like a SIGTERM; `force` cancels like the second one. */
  "host/shutdown": { params: ShutdownParams; result: Done };
  /** The configured agents, and whether they can be started. */
  "agent/list": { params: AgentListParams; result: AgentList };
  /** One configured agent. */
  "agent/get": { params: AgentParams; result: AgentDescriptor };
  /** What can be told of an agent without starting it, each finding with its cure. */
  "agent/check": { params: AgentParams; result: AgentCheck };
  /** Logs in to an agent by one of its methods; sessions that waited for it go on. */
  "agent/authenticate": { params: AgentAuthenticateParams; result: AgentLogin };
  /** Logs out of an agent, where it offers that. */
  "agent/logout": { params: AgentParams; result: AgentLogin };
  /** Try an agent out in a scratch folder; minutes where its model is slow. */
  "agent/probe": { params: AgentProbeParams; result: AgentProbe };
  /** Opens a session; it is only recorded, the agent starts at first need or with `start`. */
  "session/create": { params: SessionCreateParams; result: Session };
  /** The sessions; filters are joined by and. */
  "session/list": { params: SessionListParams; result: SessionPage };
  /** One session. */
  "session/get": { params: SessionParams; result: Session };
  /** Sets the agent's mode, model or options; absent is left as it is, null forgets. */
  "session/configure": { params: SessionConfigureParams; result: Session };
  /** Gives a session a title of its own; null leaves it to the agent. */
  "session/rename": { params: SessionRenameParams; result: Session };
  /** Keeps a session whatever the rules of retention say, or no longer. */
  "session/pin": { params: SessionPinParams; result: Session };
  /** Deletes a session here, and on request also where the agent keeps it. */
  "session/delete": { params: SessionDeleteParams; result: SessionDeleted };
  /** The sessions that an agent keeps itself, and which of them are known here. */
  "session/discover": { params: SessionDiscoverParams; result: Discovered };
  /** A session that goes on with one the agent keeps; the one there is, if there is one. */
  "session/adopt": { params: SessionAdoptParams; result: Session };
  /** A session that begins with what this one has said, and goes its own way. */
  "session/fork": { params: SessionForkParams; result: Session };
  /** What a client that comes back asks first: the run that is not over, and the queue. */
  "session/activeRun": { params: ActiveRunParams; result: ActiveRun };
  /** Sends a prompt, or queues it while the agent is busy; repeated, it is the same run. */
  "run/create": { params: RunCreateParams; result: Run };
  /** One run; `include` adds its envelope. */
  "run/get": { params: RunGetParams; result: Run };
  /** The runs, newest first. */
  "run/list": { params: RunListParams; result: RunPage };
  /** A page of a run's events: greater seqs only, oldest first. */
  "run/events": { params: RunEventsParams; result: EventsPage };
  /** Answers when the run is over, or with the run as it is after `timeoutMs`. */
  "run/wait": { params: RunWaitParams; result: Run };
  /** Stops a run; answers at once, `run/wait` tells the end. */
  "run/cancel": { params: RunCancelParams; result: Run };
  /** A second try of an interrupted run, made once for each `resumeRequestId`. */
  "run/resume": { params: RunResumeParams; result: Run };
  /** Says that an interrupted run has been seen and is not to be resumed. */
  "run/dismiss": { params: RunParams; result: Run };
  /** The runs of a session that wait, head first. */
  "queue/list": { params: QueueListParams; result: QueuedRunPage };
  /** Gives a run that waits another prompt; `conflict` if it changed meanwhile, or started. */
  "queue/edit": { params: QueueEditParams; result: QueuedRun };
  /** Gives a run that waits another place; `conflict` if it changed meanwhile, or started. */
  "queue/move": { params: QueueMoveParams; result: QueuedRun };
  /** Lets nothing more of a session's queue start; the running turn goes on. */
  "queue/hold": { params: QueueHoldParams; result: Session };
  /** Lets a held queue go on. */
  "queue/release": { params: SessionParams; result: Session };
  /** Follows a session, a run or all; the events come as notifications. */
  "events/subscribe": { params: SubscribeParams; result: Subscribed };
  /** Ends a subscription of this connection. */
  "events/unsubscribe": { params: UnsubscribeParams; result: Done };
  /** The decisions; pending ones unless a status is named. */
  "permission/list": { params: PermissionListParams; result: DecisionPage };
  /** Answers an agent's question with one of the offered options; the first answer counts. */
  "permission/respond": { params: PermissionRespondParams; result: Decision };
  /** Answers a form or an address of an agent; the first valid answer wins. */
  "elicitation/respond": { params: ElicitationRespondParams; result: Decision };
  /** Which agent serves a session, whether it remembers, why it is busy. */
  "runtime/status": { params: RuntimeStatusParams; result: RuntimeStatus | RuntimeStatusPage };
  /** Has a session's agent started, and answers when it is there; or why it cannot be had. */
  "runtime/start": { params: SessionParams; result: RuntimeStarted };
  /** Ends a session's agent; `next` says what the next run begins with. */
  "runtime/reset": { params: RuntimeResetParams; result: RuntimeReset };
  /** What went wrong lately: complaints of agents, failed tools, refused permissions. */
  "runtime/logs": { params: RuntimeLogsParams; result: RuntimeLogs };
  /** What the daemon rests on: whether agents can be started and events be kept. */
  "runtime/health": { params: NoParams; result: RuntimeHealth };
  /** The agents' processes and what they have started, with memory and age. */
  "runtime/processes": { params: ProcessesParams; result: ProcessRecordPage };
  /** Context, turn and session kept apart; of a run, or of a session and its last run. */
  "usage/get": { params: UsageGetParams; result: UsageProjection };
  /** The commands that agents run through the host now. */
  "job/list": { params: JobListParams; result: Page };
  /** End a command; its agent goes on, and sees how it ended. */
  "job/stop": { params: JobParams; result: Job };
  /** End every command that runs, of one session or of all. */
  "job/stopAll": { params: JobStopAllParams; result: JobsStopped };
  /** The folders that the actor lets agents use beside those of their sessions. */
  "grant/list": { params: NoParams; result: Page };
  /** Let agents use a folder in all sessions of the actor, to read only or also to write. */
  "grant/add": { params: GrantAddParams; result: Grant };
  /** Take a folder back; the answer is what was granted. */
  "grant/remove": { params: GrantRemoveParams; result: Grant };
}

/** What the daemon says of its own accord. */
export interface Notifications {
  "events": { params: EventsNotification };
}

/** What the daemon asks a client that offered to answer. */
export interface Questions {
  "fs/read_text_file": { params: ReadTextFile; result: ReadTextFileResult };
  "fs/write_text_file": { params: WriteTextFile; result: WriteTextFileResult };
}
