// An agent on the official TypeScript SDK: echoes, remembers, asks, and can be stopped.
// Usage: node typescript_agent.mjs FOLDER_OF_THE_SDK STORE
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, store] = process.argv.slice(2);
const found = createRequire(`${sdk}/`).resolve("@agentclientprotocol/sdk");
const { agent, methods, ndJsonStream } = await import(pathToFileURL(found).href);

const all = () => (existsSync(store) ? JSON.parse(readFileSync(store, "utf8")) : {});
const keep = (id, said) => writeFileSync(store, JSON.stringify({ ...all(), [id]: said }));
const stops = new Map();

const tell = (host, sessionId, update) =>
  host.notify(methods.client.session.update, { sessionId, update });
const say = (host, sessionId, text, sessionUpdate = "agent_message_chunk") =>
  tell(host, sessionId, { sessionUpdate, content: { type: "text", text } });

async function answer(host, sessionId, said) {
  const before = all()[sessionId];
  keep(sessionId, [...before, said]);
  if (said === "ask") {
    const call = { toolCallId: "call-1", title: "Touch it", kind: "edit" };
    await tell(host, sessionId, { sessionUpdate: "tool_call", status: "pending", ...call });
    const { outcome } = await host.request(methods.client.session.requestPermission, {
      sessionId,
      toolCall: { toolCallId: "call-1" },
      options: [
        { optionId: "y", name: "Yes", kind: "allow_once" },
        { optionId: "n", name: "No", kind: "reject_once" },
      ],
    });
    await tell(host, sessionId, {
      sessionUpdate: "tool_call_update",
      toolCallId: "call-1",
      status: "completed",
    });
    await say(host, sessionId, `answered ${outcome.optionId}`);
    return "end_turn";
  }
  const quoted = before.map((one) => `'${one}'`).join(", ");
  await say(host, sessionId, `you said ${said}, before that [${quoted}]`);
  if (said !== "wait") return "end_turn";
  await new Promise((stop) => stops.set(sessionId, stop));
  return "cancelled";
}

agent({ name: "echo" })
  .onRequest(methods.agent.initialize, ({ params }) => ({
    protocolVersion: params.protocolVersion,
    agentCapabilities: { loadSession: true },
  }))
  .onRequest(methods.agent.session.new, () => {
    const sessionId = `sdk-${Object.keys(all()).length + 1}`;
    keep(sessionId, []);
    return { sessionId };
  })
  .onRequest(methods.agent.session.load, async ({ params, client }) => {
    for (const said of all()[params.sessionId]) {
      await say(client, params.sessionId, said, "user_message_chunk");
      await say(client, params.sessionId, `you said ${said}`);
    }
    return {};
  })
  .onRequest(methods.agent.session.prompt, async ({ params, client }) => ({
    stopReason: await answer(client, params.sessionId, params.prompt.at(-1).text),
  }))
  .onNotification(methods.agent.session.cancel, ({ params }) => stops.get(params.sessionId)?.())
  .connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
