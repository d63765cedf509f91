// Calls and watches a server that answers by a script, and prints what came of it. Arguments: the server's URL, what to
// do, and how long one attempt may take in milliseconds. Nothing is ended by a time that a busy machine may need for
// the step before it.
import { ApiError, BadAnswer, ConnectionLost, Transport, Watch } from "./build/client.js";

const [baseUrl, what, timeoutMs = "120000"] = process.argv.slice(2);
const settings = { baseUrl, token: "secret", retries: 1, timeoutMs: Number(timeoutMs), mostAnswerBytes: 100_000 };
const transport = new Transport(settings);

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
  // Any attempt may take too long; what counts is that the next ones are made.
  patient: () => tell(() => new Transport({ ...settings, retries: 50 }).call("a.b", {}, true)),
  // An abort after the first answer ends the wait before another attempt, long before that would be made.
  abort: async () => {
    const abort = new AbortController();
    let late;
    const fetchOnce = async (...request) => {
      const response = await fetch(...request);
      setTimeout(() => abort.abort(), 100);
      return response;
    };
    const call = tell(() => new Transport({ ...settings, fetch: fetchOnce }).call("a.b", {}, true, { signal: abort.signal }));
    // Timers of one process fire in their order, however late.
    const waited = new Promise((resolve) => (late = setTimeout(() => resolve({ error: "still waiting" }), 15_000)));
    const met = await Promise.race([call, waited]);
    clearTimeout(late);
    return met;
  },
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
    const abort = new AbortController();
    const watch = new Watch(transport, "a.get", {}, undefined, { everyMs: 60_000, atMostMs: 60_000 }, { signal: abort.signal });
    return tell(async () => {
      for await (const each of watch) setTimeout(() => abort.abort(new Error(`cancelled after ${each.state}`)), 50);
    });
  },
  patience: () => tell(() => shown(new Watch(transport, "a.get", {}, undefined, { ...fast, patienceMs: 500 }), 5)),
};
console.log(JSON.stringify(await programs[what]()));
