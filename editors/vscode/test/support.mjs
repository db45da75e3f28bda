// What the tests share: the compiled client, a front that keeps what it is shown, and waiting.
// ACPHOST_SOCKET leads to a daemon, ACPHOST_FOLDER to the folder where its agent looks for gates.

import { EventEmitter, once } from "node:events";
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const require = createRequire(import.meta.url);
const out = process.env.ACPHOST_OUT ?? new URL("../out", import.meta.url).pathname;

export const { Client, HostError, defaultSocketPath } = require(join(out, "client.js"));
export const { Chat } = require(join(out, "chat.js"));

export const socketPath = defaultSocketPath();
export const folder = process.env.ACPHOST_FOLDER ?? process.cwd();
export const cwd = join(folder, "work");

export function client(options = {}) {
  return new Client({ socketPath, clientName: "vscode", clientVersion: "0", ...options });
}

export class Front extends EventEmitter {
  shown = "";
  notes = [];
  questions = [];
  remembered = undefined;
  /** Answers a question; by default nobody does. */
  answer = () => new Promise(() => undefined);

  text(piece) {
    this.shown += piece;
    this.emit("news");
  }

  note(line) {
    this.notes.push(line);
    this.emit("news");
  }

  changed() {
    this.emit("news");
  }

  ask(question, signal) {
    this.questions.push({ question, signal });
    this.emit("news");
    return this.answer(question, signal);
  }

  remember(remembered) {
    this.remembered = remembered;
  }

  /** Wait until something holds; the test's own timeout ends it otherwise. */
  async until(holds) {
    while (!holds()) {
      await once(this, "news");
    }
  }
}

export function gate(name) {
  return {
    open: () => writeFileSync(join(folder, name), ""),
    close: () => rmSync(join(folder, name), { force: true }),
    isOpen: () => existsSync(join(folder, name)),
  };
}

export const said = (text) => [{ type: "text", text }];
