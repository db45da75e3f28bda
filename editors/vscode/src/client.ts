/**
 * The daemon's socket without an editor: requests, subscriptions that survive a lost connection
 * without gap or repeat, and answers to what the daemon asks. Nothing here knows of VS Code.
 */

import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";

import type {
  ErrorCode,
  Event,
  EventsNotification,
  InitializeResult,
  Methods,
  Scope,
} from "./protocol";

const FIRST_DELAY = 100;
const LAST_DELAY = 2_000;

/** A request that failed, by the daemon's own word; `connection_lost` is ours. */
export class HostError extends Error {
  constructor(
    readonly code: ErrorCode | "connection_lost",
    message: string,
    readonly data: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** Answers a request of the daemon; throwing means that the client does not have it. */
export type Answerer = (params: Record<string, unknown>) => Promise<unknown> | unknown;

export interface Options {
  socketPath: string;
  clientName: string;
  clientVersion: string;
  /** Sent in `initialize`; `fs.readTextFile` belongs to an answerer of `fs/read_text_file`. */
  capabilities?: Record<string, unknown>;
  answerers?: Record<string, Answerer>;
  onState?: (state: State, reason?: string) => void;
}

export type State = "connecting" | "ready" | "lost" | "closed";

/** Where the daemon listens if nothing else is said, by the same rule as its own. */
export function defaultSocketPath(environ: NodeJS.ProcessEnv = process.env): string {
  if (environ.ACPHOST_SOCKET) {
    return environ.ACPHOST_SOCKET;
  }
  const runtime = environ.XDG_RUNTIME_DIR;
  if (runtime?.startsWith("/")) {
    return path.join(runtime, "acphost", "acphost.sock");
  }
  const temporary = environ.TMPDIR?.startsWith("/") ? environ.TMPDIR : "/tmp";
  return path.join(temporary, `acphost-${os.userInfo().uid}`, "acphost.sock");
}

interface Waiting {
  resolve: (result: unknown) => void;
  reject: (problem: Error) => void;
}

interface Line {
  id?: number | string | null;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { message: string; data?: { code?: string } };
}

export class Client {
  /** What the daemon said of itself when the connection at hand began. */
  info: InitializeResult | undefined;
  state: State = "connecting";

  private connection: net.Socket | undefined;
  private nextId = 0;
  private readonly waiting = new Map<number, Waiting>();
  private readonly subscriptions = new Set<Subscription>();
  private delay = FIRST_DELAY;
  private timer: NodeJS.Timeout | undefined;
  private ready!: Promise<void>;
  private tellReady!: () => void;

  constructor(private readonly options: Options) {
    this.unready();
    this.connect();
  }

  /** Wait for a connection: the first, or the next after one was lost. */
  async connected(): Promise<InitializeResult> {
    await this.ready;
    return this.info as InitializeResult;
  }

  /**
   * Call a method. Rejects with a HostError; `connection_lost` if there is no connection, or it goes
   * before the answer comes. What carries a request id of its own can then be sent again. `onResult`
   * is called before the next line is looked at; whoever awaits goes on only some lines later.
   */
  request<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    onResult?: (result: Methods[M]["result"]) => void,
  ): Promise<Methods[M]["result"]> {
    if (this.state !== "ready") {
      return Promise.reject(new HostError("connection_lost", "there is no daemon"));
    }
    return this.call(method, params, onResult);
  }

  /** The same, but it waits for a connection and is sent again after a lost one. */
  async insist<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
  ): Promise<Methods[M]["result"]> {
    for (;;) {
      await this.connected();
      try {
        return await this.request(method, params);
      } catch (problem) {
        if (!(problem instanceof HostError) || problem.code !== "connection_lost") {
          throw problem;
        }
        if (this.state === "closed") {
          throw problem;
        }
      }
    }
  }

  /** Follow a session, a run or all; `after` is the last seq (or offset, for all) that was seen. */
  subscribe(scope: Scope, after?: string): Subscription {
    const subscription = new Subscription(this, scope, after, () =>
      this.subscriptions.delete(subscription),
    );
    this.subscriptions.add(subscription);
    if (this.state === "ready") {
      void subscription.begin();
    }
    return subscription;
  }

  /** End it for good; the daemon and its agents go on. */
  close(): void {
    this.state = "closed";
    clearTimeout(this.timer);
    this.drop("closed");
    for (const subscription of [...this.subscriptions]) {
      subscription.close();
    }
    this.options.onState?.("closed");
  }

  // -- the connection ----------------------------------------------------------------------------

  private connect(): void {
    this.state = "connecting";
    const connection = net.connect(this.options.socketPath);
    this.connection = connection;
    let parts: Buffer[] = [];
    let reason = "the daemon went away";
    connection.on("connect", () => void this.greet());
    connection.on("error", (problem) => (reason = problem.message));
    connection.on("close", () => {
      if (this.connection === connection) {
        this.lost(reason);
      }
    });
    connection.on("data", (chunk: Buffer) => {
      // Bytes are joined before they are decoded: a character may be cut in two.
      let from = 0;
      for (let to = chunk.indexOf(10); to >= 0; to = chunk.indexOf(10, from)) {
        parts.push(chunk.subarray(from, to));
        const line = Buffer.concat(parts).toString("utf8");
        parts = [];
        from = to + 1;
        if (this.connection === connection) {
          this.take(line);
        }
      }
      if (from < chunk.length) {
        parts.push(chunk.subarray(from));
      }
    });
  }

  private async greet(): Promise<void> {
    try {
      this.info = await this.call("initialize", {
        protocolVersion: 1,
        clientInfo: { name: this.options.clientName, version: this.options.clientVersion },
        clientId: this.info?.clientId ?? null,
        capabilities: this.options.capabilities ?? {},
      });
    } catch (problem) {
      this.connection?.destroy(problem as Error);
      return;
    }
    this.state = "ready";
    this.delay = FIRST_DELAY;
    for (const subscription of this.subscriptions) {
      void subscription.begin();
    }
    this.options.onState?.("ready");
    this.tellReady();
  }

  private lost(reason: string): void {
    if (this.state === "closed") {
      return;
    }
    if (this.state === "ready") {
      this.unready();
    }
    this.state = "lost";
    this.drop(reason);
    this.timer = setTimeout(() => this.connect(), this.delay);
    this.delay = Math.min(this.delay * 2, LAST_DELAY);
    this.options.onState?.("lost", reason);
  }

  private unready(): void {
    this.ready = new Promise((resolve) => (this.tellReady = resolve));
  }

  private drop(reason: string): void {
    const connection = this.connection;
    this.connection = undefined;
    connection?.destroy();
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const each of waiting) {
      each.reject(new HostError("connection_lost", reason));
    }
    for (const subscription of this.subscriptions) {
      subscription.interrupt();
    }
  }

  private call<M extends keyof Methods>(
    method: M,
    params: Methods[M]["params"],
    onResult?: (result: Methods[M]["result"]) => void,
  ): Promise<Methods[M]["result"]> {
    const id = ++this.nextId;
    const answer = new Promise<unknown>((resolve, reject) => {
      const settle = (result: unknown): void => {
        onResult?.(result as Methods[M]["result"]);
        resolve(result);
      };
      this.waiting.set(id, { resolve: settle, reject });
    });
    this.send({ jsonrpc: "2.0", id, method, params });
    return answer as Promise<Methods[M]["result"]>;
  }

  private send(line: object): void {
    this.connection?.write(JSON.stringify(line) + "\n");
  }

  private take(text: string): void {
    let line: Line;
    try {
      line = JSON.parse(text) as Line;
    } catch {
      this.connection?.destroy(new Error("the daemon sent a line that is no JSON"));
      return;
    }
    if (line.method !== undefined && line.id !== undefined) {
      void this.answer(line);
    } else if (line.method === "events") {
      const params = line.params as unknown as EventsNotification;
      for (const subscription of this.subscriptions) {
        subscription.take(params);
      }
    } else if (line.method === undefined) {
      this.settle(line);
    }
  }

  private settle(line: Line): void {
    const waiting = this.waiting.get(line.id as number);
    this.waiting.delete(line.id as number);
    if (line.error) {
      const { message, data = {} } = line.error;
      waiting?.reject(new HostError(data.code ?? "internal", message, data));
    } else {
      waiting?.resolve(line.result);
    }
  }

  private async answer(line: Line): Promise<void> {
    const { id, method = "", params = {} } = line;
    const answerer = this.options.answerers?.[method];
    if (!answerer) {
      const error = { code: -32601, message: `not offered here: ${method}` };
      this.send({ jsonrpc: "2.0", id, error });
      return;
    }
    const connection = this.connection;
    let reply: object;
    try {
      reply = { jsonrpc: "2.0", id, result: await answerer(params) };
    } catch (problem) {
      reply = { jsonrpc: "2.0", id, error: { code: -32002, message: String(problem) } };
    }
    if (connection === this.connection) {
      // An answer to another connection's question would be taken for something else.
      this.send(reply);
    }
  }
}

/** The events of a scope, each once and in order, for as long as it is read; see `Client.subscribe`. */
export class Subscription implements AsyncIterable<Event> {
  /** History has been told; what comes now happens now. */
  caughtUp = false;
  onCaughtUp: (() => void) | undefined;

  private id: string | undefined;
  private storeId: string | undefined;
  private ended: Error | true | undefined;
  private readonly events: Event[] = [];
  private wake: (() => void) | undefined;

  constructor(
    private readonly client: Client,
    private readonly scope: Scope,
    private after: string | undefined,
    private readonly onClose: () => void,
  ) {}

  /** The last position seen: what to give `subscribe` the next time. */
  get position(): string | undefined {
    return this.after;
  }

  private get isBySeq(): boolean {
    return this.scope.sessionId != null || this.scope.hostRunId != null;
  }

  /** Ask for everything after the last event seen; called for each new connection. */
  async begin(): Promise<void> {
    const position = this.after === undefined ? {} : this.positionParams(this.after);
    try {
      const params = {
        scope: this.scope,
        ...position,
        ...(this.storeId === undefined ? {} : { storeId: this.storeId }),
      };
      await this.client.request("events/subscribe", params, (begun) => {
        // The first events may stand in the next line already.
        this.id = begun.subscriptionId;
        this.storeId ??= this.client.info?.storeId;
      });
    } catch (problem) {
      if (!(problem instanceof HostError && problem.code === "connection_lost")) {
        this.end(problem as Error);
      }
    }
  }

  private positionParams(after: string): { afterSeq: string } | { afterOffset: string } {
    return this.isBySeq ? { afterSeq: after } : { afterOffset: after };
  }

  /** The connection has gone; `begin` follows. */
  interrupt(): void {
    this.id = undefined;
    this.caughtUp = false;
  }

  /** A notification, of whichever subscription. */
  take(params: EventsNotification): void {
    if (params.subscriptionId !== this.id) {
      return;
    }
    this.events.push(...params.events);
    this.after = (this.isBySeq ? params.cursor.seq : params.cursor.offset) ?? this.after;
    if (params.caughtUp) {
      this.caughtUp = true;
    }
    this.wake?.();
    if (params.caughtUp) {
      this.onCaughtUp?.();
    }
  }

  /** No more of it. */
  close(): void {
    this.end(true);
  }

  private end(how: Error | true): void {
    this.ended ??= how;
    this.onClose();
    if (this.id !== undefined && this.client.state === "ready") {
      this.client.request("events/unsubscribe", { subscriptionId: this.id }).catch(() => undefined);
    }
    this.id = undefined;
    this.wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event> {
    try {
      for (;;) {
        const event = this.events.shift();
        if (event !== undefined) {
          yield event;
        } else if (this.ended !== undefined) {
          if (this.ended !== true) {
            throw this.ended;
          }
          return;
        } else {
          await new Promise<void>((resolve) => (this.wake = resolve));
        }
      }
    } finally {
      this.close();
    }
  }
}
