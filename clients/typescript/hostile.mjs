// Calls and watches a server that answers by a script, and prints what came of it. Argument: the server's URL.
import { ApiError, BadAnswer, ConnectionLost, Transport, Watch } from "./build/client.js";

const [baseUrl, what] = process.argv.slice(2);
const transport = new Transport({ baseUrl, token: "secret", retries: 1, timeoutMs: 1000, mostAnswerBytes: 100_000 });

async function tell(work) {
  try {
    return { answer: await work() };
  } catch (error) {
    if (error instanceof ApiError) return { error: "ApiError", code: error.code, told: error.message };
    if (error instanceof BadAnswer || error instanceof ConnectionLost) return { error: error.name, told: error.message };
    return { error: error.name, told: error.message };
  }
}

async function shown(watch, count) {
  const found = [];
  for await (const each of watch) {
    found.push(each.kind ? `${each.kind} ${each.id}` : each.state);
    if (found.length === count) break;
  }
  return found;
}

const fast = { everyMs: 5, atMostMs: 10 };
const byId = (item) => item.id;
const programs = {
  call: () => tell(() => transport.call("a.b", {}, true)),
  // An abort ends the wait before another attempt.
  abort: () => tell(() => transport.call("a.b", {}, true, { signal: AbortSignal.timeout(3_000) })),
  get: () => shown(new Watch(transport, "a.get", {}, undefined, fast), 3),
  list: () => shown(new Watch(transport, "a.list", { kind: "k" }, byId, fast), 7),
  resume: async () => {
    const first = new Watch(transport, "a.list", {}, byId, fast);
    const before = await shown(first, 1);
    const later = new Watch(transport, "a.list", {}, byId, { ...fast, since: first.position });
    const after = await shown(later, 1);
    const foreign = await tell(() => new Watch(transport, "a.other", {}, byId, { since: first.position }));
    const rubbish = await tell(() => new Watch(transport, "a.list", {}, byId, { since: "%" }));
    return { before, after, foreign: foreign.error, rubbish: rubbish.error };
  },
  stop: async () => {
    const watch = new Watch(transport, "a.get", {}, undefined, { everyMs: 60_000, atMostMs: 60_000 });
    const found = [];
    for await (const each of watch) {
      found.push(each.state);
      setTimeout(() => watch.stop(), 50);
    }
    return found;
  },
  cancel: () => {
    const signal = AbortSignal.timeout(300);
    return tell(() => shown(new Watch(transport, "a.get", {}, undefined, { everyMs: 60_000, atMostMs: 60_000 }, { signal }), 5));
  },
  patience: () => tell(() => shown(new Watch(transport, "a.get", {}, undefined, { ...fast, patienceMs: 500 }), 5)),
};
console.log(JSON.stringify(await programs[what]()));
