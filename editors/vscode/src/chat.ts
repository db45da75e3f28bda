/**
 * A chat over one session, for any front that can show text: what is said, how the session is, what
 * waits, what is asked. Nothing here knows of VS Code.
 */

import { randomUUID } from "node:crypto";

import { Client, HostError, Subscription } from "./client";
import type { Decision, Event, PermissionOption, QueuedRun, Run, Session } from "./protocol";

/** What is kept over a restart of the editor. */
export interface Remembered {
  sessionId: string;
  storeId: string;
  lastSeq: string;
  /** The run at work, as `mnote.page_ai_active_run_snapshot.v1`. */
  activeRun?: { schema: string; hostRunId: string; sessionId: string; lastSeq: string; createdAt: string };
}

export interface Question {
  permissionId: string;
  title: string;
  options: PermissionOption[];
}

/** Where a chat is shown. */
export interface Front {
  /** Text of the conversation, in order; pieces of one answer follow each other. */
  text(piece: string): void;
  /** A line about it, such as how a run ended. */
  note(line: string): void;
  /** Status, queue or questions have changed. */
  changed(): void;
  /** An agent asks; resolves to an option's id, or undefined if nobody chose. */
  ask(question: Question, signal: AbortSignal): Promise<string | undefined>;
  /** Keep this over a restart; undefined: nothing any more. */
  remember(remembered: Remembered | undefined): void;
}

interface Payload {
  content?: { text?: string } | { text?: string }[];
  title?: string;
  status?: string;
  toolCallId?: string;
  permissionId?: string;
  options?: PermissionOption[];
  toolCall?: { title?: string };
  optionId?: string;
  by?: { clientName?: string };
  error?: string;
  stopReason?: string;
  reason?: string;
}

export class Chat {
  session: Session | undefined;
  run: Run | null = null;
  queued: QueuedRun[] = [];
  private readonly open = new Map<string, AbortController>();
  private subscription: Subscription | undefined;
  private speaker: string | undefined;
  private refreshing = false;
  private lastSeq = "0";

  constructor(
    private readonly client: Client,
    private readonly front: Front,
    private readonly agentId: string,
    private readonly cwd: string,
  ) {}

  /** Questions that nobody has answered yet. */
  get questions(): number {
    return this.open.size;
  }

  /** One line about the session: agent, status, queue, questions. */
  get description(): string {
    const parts = [this.session?.agentId ?? this.agentId, this.session?.status ?? "new"];
    if (this.session?.statusReason) {
      parts.push(this.session.statusReason);
    }
    if (this.queued.length > 0) {
      parts.push(`${this.queued.length} queued`);
    }
    if (this.open.size > 0) {
      parts.push(`${this.open.size} to answer`);
    }
    if (this.client.state !== "ready") {
      parts.push("no daemon");
    }
    return parts.join(" · ");
  }

  /** Go on with what was remembered; whether there was still something to go on with. */
  async resume(remembered: Remembered): Promise<boolean> {
    const info = await this.client.connected();
    try {
      if (info.storeId !== remembered.storeId) {
        throw new HostError("session_not_found", "the daemon has another store");
      }
      const session = await this.client.insist("session/get", { sessionId: remembered.sessionId });
      this.follow(session, remembered.lastSeq);
      return true;
    } catch (problem) {
      this.front.remember(undefined);
      if (problem instanceof HostError && problem.code === "session_not_found") {
        return false;
      }
      throw problem;
    }
  }

  /**
   * Send a message. It has an id of its own, so that it is one run also if the connection is lost
   * meanwhile; while the agent is busy it waits in the queue.
   */
  async send(prompt: unknown[], contextRefs: string[] = []): Promise<Run> {
    const target =
      this.session === undefined
        ? { agentId: this.agentId, cwd: this.cwd }
        : { sessionId: this.session.sessionId };
    const requestId = `vscode-${randomUUID()}`;
    const run = await this.client.insist("run/create", { requestId, prompt, contextRefs, ...target });
    if (this.session === undefined) {
      this.follow(await this.client.insist("session/get", { sessionId: run.sessionId }), "0");
    }
    return run;
  }

  /** Stop the turn; the queue goes on. */
  async stop(): Promise<void> {
    if (this.run) {
      await this.client.request("run/cancel", { hostRunId: this.run.hostRunId });
    }
  }

  /** Take a waiting message back. */
  async takeBack(item: QueuedRun): Promise<void> {
    await this.client.request("run/cancel", { hostRunId: item.runId });
  }

  /** Ask again what was closed without an answer. */
  async askAgain(): Promise<void> {
    if (this.session) {
      const { sessionId } = this.session;
      for (const decision of (await this.client.request("permission/list", { sessionId })).items) {
        this.asked(decision);
      }
    }
  }

  /** Leave the session; it goes on in the daemon. */
  close(): void {
    this.subscription?.close();
    for (const dialog of this.open.values()) {
      dialog.abort();
    }
    this.open.clear();
  }

  private follow(session: Session, after: string): void {
    this.session = session;
    this.lastSeq = after;
    const subscription = this.client.subscribe({ sessionId: session.sessionId }, after);
    this.subscription = subscription;
    subscription.onCaughtUp = () => {
      // What is open is asked when history is over: most of it was answered in it.
      void this.askAgain().catch(() => undefined);
      this.refresh();
    };
    void this.read(subscription);
  }

  private async read(subscription: Subscription): Promise<void> {
    try {
      for await (const event of subscription) {
        this.take(event, subscription.caughtUp);
      }
    } catch (problem) {
      this.front.remember(undefined);
      this.front.note(`the session cannot be followed: ${(problem as Error).message}`);
    }
  }

  // -- events ------------------------------------------------------------------------------------

  private take(event: Event, isLive: boolean): void {
    const payload = (event.payload ?? {}) as Payload;
    this.lastSeq = event.seq ?? this.lastSeq;
    switch (event.kind) {
      case "message.user":
        this.turn("user", `\n> ${texts(payload).replaceAll("\n", "\n> ")}\n`);
        break;
      case "message.delta":
        this.turn("message", texts(payload));
        break;
      case "thought.delta":
        this.turn("thought", texts(payload));
        break;
      case "tool.started":
      case "tool.completed":
      case "tool.failed":
        this.note(`${event.kind.slice(5)}: ${payload.title ?? payload.toolCallId ?? "tool"}`);
        break;
      case "permission.requested":
        if (isLive) {
          this.asked({ ...payload, permissionId: payload.permissionId ?? "" } as Decision);
        }
        break;
      case "permission.resolved":
      case "permission.expired":
        this.answered(payload);
        break;
      case "run.failed":
      case "run.cancelled":
      case "run.interrupted":
        this.note([event.kind.slice(4), payload.error].filter(Boolean).join(": "));
        break;
      default:
        break; // kinds that say nothing to a person, and those of a newer daemon
    }
    if (/^(run|queue|permission)\./.test(event.kind) && isLive) {
      this.refresh();
    }
  }

  /** Streamed text; where somebody else speaks a new paragraph begins. */
  private turn(speaker: string, text: string): void {
    if (this.speaker !== undefined && this.speaker !== speaker) {
      this.front.text("\n");
    }
    this.speaker = speaker;
    this.front.text(text);
  }

  private note(line: string): void {
    this.speaker = undefined;
    this.front.note(line);
  }

  private asked(decision: Decision): void {
    if (this.open.has(decision.permissionId)) {
      return;
    }
    const request = (decision.request ?? decision) as Payload;
    const question = {
      permissionId: decision.permissionId,
      title: request.toolCall?.title ?? "An agent asks for permission",
      options: decision.options,
    };
    const dialog = new AbortController();
    this.open.set(question.permissionId, dialog);
    this.front.changed();
    void this.front.ask(question, dialog.signal).then(async (optionId) => {
      if (optionId === undefined || dialog.signal.aborted) {
        this.open.delete(question.permissionId);
        return;
      }
      try {
        await this.client.insist("permission/respond", {
          permissionId: question.permissionId,
          optionId,
        });
      } catch (problem) {
        this.note((problem as Error).message);
      }
    });
  }

  private answered(payload: Payload): void {
    const permissionId = payload.permissionId ?? "";
    this.open.get(permissionId)?.abort();
    this.open.delete(permissionId);
    const by = payload.by?.clientName ? ` by ${payload.by.clientName}` : "";
    this.note(`answered${by}: ${payload.optionId ?? payload.reason ?? "withdrawn"}`);
  }

  // -- state -------------------------------------------------------------------------------------

  /** Events tell that something changed; how it is now is asked once for many of them. */
  private refresh(): void {
    if (this.refreshing || !this.session) {
      return;
    }
    this.refreshing = true;
    const { sessionId } = this.session;
    setTimeout(() => {
      this.refreshing = false;
      void this.look(sessionId).catch(() => undefined);
    }, 20);
  }

  private async look(sessionId: string): Promise<void> {
    const [session, active] = await Promise.all([
      this.client.request("session/get", { sessionId }),
      this.client.request("session/activeRun", { sessionId }),
    ]);
    this.session = session;
    this.run = active.run;
    this.queued = active.queued;
    this.front.changed();
    this.front.remember(this.remembered());
  }

  private remembered(): Remembered | undefined {
    const storeId = this.client.info?.storeId;
    if (!this.session || storeId === undefined) {
      return undefined;
    }
    const { sessionId } = this.session;
    const base = { sessionId, storeId, lastSeq: this.lastSeq };
    if (!this.run) {
      return base;
    }
    const { hostRunId, createdAt } = this.run;
    const schema = "mnote.page_ai_active_run_snapshot.v1";
    return { ...base, activeRun: { schema, hostRunId, sessionId, lastSeq: this.lastSeq, createdAt } };
  }
}

function texts(payload: Payload): string {
  const blocks = Array.isArray(payload.content) ? payload.content : [payload.content];
  return blocks.map((block) => block?.text ?? "").join("");
}
