// An editor on the official TypeScript SDK: one session in two processes, told as one JSON object.
// Usage: node typescript_client.mjs FOLDER_OF_THE_SDK FOLDER COMMAND...
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, cwd, ...command] = process.argv.slice(2);
const found = createRequire(`${sdk}/`).resolve("@agentclientprotocol/sdk");
const { client, methods, ndJsonStream } = await import(pathToFileURL(found).href);
const { agent } = methods;

async function editor(work) {
  const said = { agent_message_chunk: "", user_message_chunk: "" };
  const waiting = [];
  const hears = (text) =>
    new Promise((heard) => {
      waiting.push([text, heard]);
      settle();
    });
  const settle = () =>
    waiting.forEach(([text, heard]) => said.agent_message_chunk.includes(text) && heard());
  const child = spawn(command[0], command.slice(1), { cwd, stdio: ["pipe", "pipe", "inherit"] });
  await client({ name: "editor" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => ({
      outcome: { outcome: "selected", optionId: params.options[0].optionId },
    }))
    .onNotification(methods.client.session.update, ({ params }) => {
      const { sessionUpdate, content } = params.update;
      if (sessionUpdate in said) said[sessionUpdate] += content.text;
      settle();
    })
    .connectWith(
      ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)),
      (peer) => work(peer, said, hears),
    );
  child.stdin.end();
  await new Promise((gone) => (child.exitCode === null ? child.on("exit", gone) : gone()));
}

const told = {};
const prompt = (peer, sessionId, text) =>
  peer.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
let sessionId;
await editor(async (peer, said, hears) => {
  const hello = await peer.request(agent.initialize, { protocolVersion: 1 });
  told.loads = hello.agentCapabilities.loadSession;
  ({ sessionId } = await peer.request(agent.session.new, { cwd, mcpServers: [] }));
  const stops = [];
  for (const word of ["hello", "ask"]) stops.push((await prompt(peer, sessionId, word)).stopReason);
  const turn = prompt(peer, sessionId, "wait");
  await hears("working");
  const behind = prompt(peer, sessionId, "hello");
  await peer.notify(agent.session.cancel, { sessionId });
  stops.push((await turn).stopReason, (await behind).stopReason);
  told.stops = stops;
  told.text = said.agent_message_chunk;
});
await editor(async (peer, said, hears) => {
  await peer.request(agent.initialize, { protocolVersion: 1 });
  await peer.request(agent.session.load, { sessionId, cwd, mcpServers: [] });
  await hears("working");
  told.users = said.user_message_chunk;
  told.past = said.agent_message_chunk;
});
console.log(JSON.stringify(told));
