// The daemon is killed and started again while this runs: `restarting` asks for it.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { Chat, Front, client, cwd, gate, said } from "./support.mjs";

test("the daemon dies: nothing is missed, nothing comes twice", { timeout: 40_000 }, async () => {
  const states = [];
  const one = client({ onState: (state) => states.push(state) });
  after(() => one.close());
  const front = new Front();
  const chat = new Chat(one, front, "fake", cwd);
  const run = await chat.send(said("hello"));
  await one.insist("run/wait", { hostRunId: run.hostRunId });
  const events = [];
  const subscription = one.subscribe({ sessionId: run.sessionId });
  const reading = (async () => {
    for await (const event of subscription) {
      events.push(event);
      if (event.kind === "message.user" && event.payload.content[0].text === "after it") {
        return;
      }
    }
  })();
  gate("restarting").open();
  while (!states.includes("lost")) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await chat.send(said("after it"));
  await reading;
  const seqs = events.map((event) => Number(event.seq));
  assert.deepEqual(seqs, seqs.map((_, index) => index + 1));
  await front.until(() => front.shown.includes("> after it"));
  assert.equal(front.shown.split("> hello").length, 2);
});
