import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";

import { Chat, Front, client, cwd, gate, said } from "./support.mjs";

const options = { timeout: 20_000 };
const go = gate("go");
const clients = [];

function start(answerers) {
  const one = client({ capabilities: { permissions: true }, answerers });
  clients.push(one);
  const front = new Front();
  return { client: one, front, chat: new Chat(one, front, "fake", cwd) };
}

beforeEach(() => go.close());
after(() => clients.forEach((each) => each.close()));

test("a message is sent and its answer streams in", options, async () => {
  const { client, front, chat } = start();
  const run = await chat.send(said("hello"));
  await client.insist("run/wait", { hostRunId: run.hostRunId });
  await front.until(() => front.shown.endsWith("three") && chat.description === "fake · idle");
  assert.match(front.shown, /> hello\n\nShort\.\none\ntwo\nthree$/);
});

test("a question is asked, answered and closed", options, async () => {
  const { front, chat } = start();
  front.answer = async (question) => question.options[0].optionId;
  await chat.send(said("permission please"));
  await front.until(() => front.shown.endsWith("It was yes."));
  assert.equal(front.questions.length, 1);
  assert.equal(front.questions[0].question.title, "Write notes.md");
  assert.deepEqual(
    front.questions[0].question.options.map((each) => each.name),
    ["Allow once", "Reject"],
  );
  assert(front.notes.includes("answered by vscode: yes"));
  await front.until(() => chat.questions === 0 && chat.description === "fake · idle");
});

test("a dialog closes when another editor answers", options, async () => {
  const { front, chat } = start();
  const other = start();
  const run = await chat.send(said("permission please"));
  await front.until(() => front.questions.length === 1);
  const { question, signal } = front.questions[0];
  const { permissionId } = question;
  await other.client.insist("permission/respond", { permissionId, optionId: "no" });
  await front.until(() => front.shown.endsWith("It was no."));
  assert(signal.aborted);
  assert.equal(chat.questions, 0);
  await assert.rejects(
    other.client.request("permission/respond", { permissionId, optionId: "yes" }),
    (problem) => problem.code === "already_resolved",
  );
  await other.client.insist("run/wait", { hostRunId: run.hostRunId });
});

test("messages wait, are taken back, and a turn is stopped", options, async () => {
  const { front, chat } = start();
  await chat.send(said("wait"));
  await front.until(() => front.shown.endsWith("before,"));
  await chat.send(said("second"));
  await chat.send(said("third"));
  await front.until(() => chat.queued.length === 2 && chat.run);
  assert.equal(chat.description, "fake · running · 2 queued");
  await chat.takeBack(chat.queued[0]);
  await front.until(() => chat.queued.length === 1);
  await chat.stop();
  await front.until(() => front.notes.includes("cancelled") && front.shown.endsWith("three"));
  assert(!front.shown.includes("> second"));
  assert(front.shown.includes("> third"));
});

test("an editor that comes back goes on where it was", options, async () => {
  const first = start();
  await first.chat.send(said("wait"));
  await first.front.until(() => first.front.shown.endsWith("before,") && first.front.remembered?.activeRun);
  const { remembered } = first.front;
  assert.equal(remembered.activeRun.schema, "mnote.page_ai_active_run_snapshot.v1");
  first.chat.close();
  first.client.close();

  const second = start();
  assert(await second.chat.resume({ ...remembered, lastSeq: first.chat.lastSeq }));
  go.open();
  await second.front.until(() => second.chat.description === "fake · idle");
  assert.equal(second.front.shown, " after.");
});

test("a session of another store is forgotten", options, async () => {
  const { front, chat } = start();
  const gone = { sessionId: "sess_gone", storeId: "another", lastSeq: "1" };
  assert.equal(await chat.resume(gone), false);
  assert.equal(front.remembered, undefined);
});

test("errors carry the daemon's word", options, async () => {
  const { client } = start();
  await client.connected();
  await assert.rejects(client.request("run/get", { hostRunId: "run_none" }), (problem) => {
    assert.equal(problem.code, "run_not_found");
    return true;
  });
  await assert.rejects(client.request("run/get", { hostRunId: 5 }), /\$\.hostRunId/);
});
