/** acphost in VS Code: a chat for the folder that is open, through the daemon. */

import * as vscode from "vscode";

import { Chat, Front, Question, Remembered } from "./chat";
import { Client, defaultSocketPath } from "./client";

const MEMORY = "acphost.session";

export function activate(context: vscode.ExtensionContext): void {
  const extension = new Extension(context);
  context.subscriptions.push(extension);
}

class Extension implements Front, vscode.Disposable {
  private readonly output = vscode.window.createOutputChannel("acphost", "markdown");
  private readonly status = vscode.window.createStatusBarItem(vscode.StatusBarAlignment.Left);
  private readonly disposables: vscode.Disposable[] = [this.output, this.status];
  private client: Client | undefined;
  private chat: Chat | undefined;

  constructor(private readonly context: vscode.ExtensionContext) {
    this.status.command = "acphost.show";
    this.command("show", () => this.show());
    this.command("send", () => this.send(false));
    this.command("sendSelection", () => this.send(true));
    this.command("stop", () => this.place().stop());
    this.command("answer", () => this.place().askAgain());
    this.command("queue", () => this.queue());
    this.command("new", () => this.begin());
    const remembered = context.workspaceState.get<Remembered>(MEMORY);
    if (remembered) {
      void this.place().resume(remembered);
    }
  }

  dispose(): void {
    this.chat?.close();
    this.client?.close();
    for (const each of this.disposables) {
      each.dispose();
    }
  }

  // -- what is shown -----------------------------------------------------------------------------

  text(piece: string): void {
    this.output.append(piece);
  }

  note(line: string): void {
    this.output.appendLine(`\n— ${line}`);
  }

  changed(): void {
    this.status.text = `$(comment-discussion) ${this.chat?.description ?? "acphost"}`;
    this.status.show();
  }

  /** A list to choose from, which closes when somebody else has answered. */
  ask(question: Question, signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      const picker = vscode.window.createQuickPick<vscode.QuickPickItem & { optionId: string }>();
      picker.title = question.title;
      picker.ignoreFocusOut = true;
      picker.items = question.options.map(({ optionId, name, kind }) => ({
        label: name || optionId,
        description: kind,
        optionId,
      }));
      signal.addEventListener("abort", () => picker.hide());
      picker.onDidAccept(() => {
        resolve(picker.selectedItems[0]?.optionId);
        picker.hide();
      });
      picker.onDidHide(() => {
        resolve(undefined);
        picker.dispose();
      });
      picker.show();
    });
  }

  remember(remembered: Remembered | undefined): void {
    void this.context.workspaceState.update(MEMORY, remembered);
  }

  // -- what people do ----------------------------------------------------------------------------

  private command(name: string, run: () => unknown): void {
    const guarded = async (): Promise<void> => {
      try {
        await run();
      } catch (problem) {
        void vscode.window.showErrorMessage(`acphost: ${(problem as Error).message}`);
      }
    };
    this.disposables.push(vscode.commands.registerCommand(`acphost.${name}`, guarded));
  }

  private show(): void {
    this.place();
    this.output.show(true);
  }

  private async send(withSelection: boolean): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const text = await vscode.window.showInputBox({ prompt: "Message", ignoreFocusOut: true });
    if (!text) {
      return;
    }
    const prompt: unknown[] = [{ type: "text", text }];
    const refs: string[] = [];
    if (editor && withSelection) {
      const { document, selection } = editor;
      const lines = `#L${selection.start.line + 1}-L${selection.end.line + 1}`;
      const resource = {
        uri: document.uri.toString() + lines,
        mimeType: "text/plain",
        text: document.getText(selection),
      };
      prompt.unshift({ type: "resource", resource });
      refs.push("selection");
    } else if (editor?.document.uri.scheme === "file") {
      const { uri } = editor.document;
      const name = uri.path.slice(uri.path.lastIndexOf("/") + 1);
      prompt.unshift({ type: "resource_link", uri: uri.toString(), name });
      refs.push("active_editor");
    }
    this.output.show(true);
    await this.place().send(prompt, refs);
  }

  private async queue(): Promise<void> {
    const chat = this.place();
    const items = chat.queued.map((item) => ({ label: item.preview, item }));
    const title = "Waiting messages (choose one to take it back)";
    const chosen = await vscode.window.showQuickPick(items, { title });
    if (chosen) {
      await chat.takeBack(chosen.item);
    }
  }

  private begin(): void {
    this.chat?.close();
    this.chat = undefined;
    this.remember(undefined);
    this.output.clear();
    this.place();
    this.changed();
  }

  // -- the daemon --------------------------------------------------------------------------------

  private place(): Chat {
    const settings = vscode.workspace.getConfiguration("acphost");
    this.client ??= new Client({
      socketPath: settings.get<string>("socket") || defaultSocketPath(),
      clientName: "vscode",
      clientVersion: vscode.version,
      capabilities: { permissions: true, fs: { readTextFile: true, writeTextFile: false } },
      answerers: { "fs/read_text_file": readUnsaved },
      onState: () => this.changed(),
    });
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
    if (!this.chat && folder === undefined) {
      throw new Error("open a folder first");
    }
    this.chat ??= new Chat(this.client, this, settings.get<string>("agent") ?? "demo", folder ?? "");
    return this.chat;
  }
}

/** What is in an editor and not yet in the file; otherwise the file on disk is all there is. */
function readUnsaved(params: Record<string, unknown>): { content: string } {
  const document = vscode.workspace.textDocuments.find(
    (each) => each.isDirty && each.uri.scheme === "file" && each.uri.fsPath === params.path,
  );
  if (!document) {
    throw new Error(`no unsaved editor has ${String(params.path)}`);
  }
  if (params.line == null && params.limit == null) {
    return { content: document.getText() };
  }
  const first = Math.max(Number(params.line ?? 1) - 1, 0);
  const last = params.limit == null ? document.lineCount : first + Number(params.limit);
  return { content: document.getText(new vscode.Range(first, 0, last, 0)) };
}
