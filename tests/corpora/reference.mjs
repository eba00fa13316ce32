// Reduces streams with the reference client, one JSON case per line in, one JSON result per line out.
// Case: {"input": {"messages", "state"}, "events"}. Result: {"error", "messages", "state", "types"}.
// AGUI_REFERENCE names the folder in which `npm install @ag-ui/client@1.0.0 rxjs@7.8.1` was run.
//
// Each event is delivered in a turn of its own: when many arrive at once, the client refuses a stream before it
// applies the events ahead of the refused one, and loses them.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(process.env.AGUI_REFERENCE + "/");
const { AbstractAgent } = require("@ag-ui/client");
const { Observable } = require("rxjs");

console.warn = console.error = () => {};

class Replay extends AbstractAgent {
  constructor(config, events) {
    super(config);
    this.events = events;
  }

  run() {
    return new Observable((subscriber) => {
      const deliver = (index) => {
        if (subscriber.closed) return;
        if (index === this.events.length) return subscriber.complete();
        subscriber.next(this.events[index]);
        setImmediate(deliver, index + 1);
      };
      deliver(0);
    });
  }
}

async function reduce({ input, events }) {
  const types = [];
  const agent = new Replay(
    { threadId: "thread", initialMessages: input.messages, initialState: input.state },
    events,
  );
  agent.subscribe({ onEvent: ({ event }) => void types.push(event.type) });
  let error = null;
  try {
    await agent.runAgent({ runId: "run" });
  } catch (failure) {
    error = String(failure?.message ?? failure);
  }
  return { error, messages: agent.messages, state: agent.state ?? null, types };
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await reduce(JSON.parse(line))) + "\n");
}
