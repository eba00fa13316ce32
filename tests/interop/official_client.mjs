// Talks to endpoints with the official client. Each line in is what to do next, {"url", "add": [messages],
// "run": {parameters}, "abortAfter": events}, each line out what came of it: {"error", "messages", "state",
// "interrupts", "types", "warnings"}. Another address means another agent and a new thread.
// AGUI_REFERENCE names the folder in which `npm install @ag-ui/client@1.0.0` was run.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(process.env.AGUI_REFERENCE + "/");
const { HttpAgent } = require("@ag-ui/client");

let warnings = [];
console.warn = console.error = (...parts) => void warnings.push(parts.map(String).join(" "));

let agent = null;

async function turn({ url, add = [], run = {}, abortAfter = Infinity }) {
  const types = [];
  let error = null;
  warnings = [];
  if (agent?.url !== url) agent = new HttpAgent({ url, threadId: "thread" });
  add.forEach((message) => agent.addMessage(message));
  const onEvent = ({ event }) => {
    types.push(event.type);
    if (types.length === abortAfter) agent.abortRun();
  };
  try {
    await agent.runAgent(run, { onEvent });
  } catch (failure) {
    error = String(failure?.message ?? failure);
  }
  const { messages, state, pendingInterrupts: interrupts } = agent;
  return { error, messages, state, interrupts, types, warnings };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await turn(JSON.parse(line))) + "\n");
}
