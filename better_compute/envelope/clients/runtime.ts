/** Refusal codes; a newer server may send others. */
export type ErrorCode = /* codes */ string;

/** A problem document (RFC 9457). Branch on `code`, never on texts. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  code: ErrorCode;
  mend?: string;
  reason?: string;
  errors?: { pointer: string; detail: string }[];
}

/** The server refused a call. */
export class ApiError extends Error {
  constructor(
    readonly problem: Problem,
    readonly retryAfterSeconds: number | undefined,
  ) {
    super(`${problem.code}: ${problem.detail}${problem.mend ? ` ${problem.mend}` : ""}`);
    this.name = "ApiError";
  }
  get code(): ErrorCode {
    return this.problem.code;
  }
  get reason(): string {
    return this.problem.reason ?? "";
  }
  get requestId(): string {
    return this.problem.instance;
  }
  /** Narrows to one code: `if (ApiError.is(error, "NOT_FOUND"))`. */
  static is(error: unknown, code: ErrorCode): error is ApiError {
    return error instanceof ApiError && error.code === code;
  }
}

/** No answer came, also after the retries. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** What answered is not the API of an installation, or not one that this client knows: no retry mends that. */
export class BadAnswer extends Error {
  override readonly name = "BadAnswer";
}

/** What a caller may ask of one call besides its input. */
export interface Options {
  /** Of a mutation; a fresh one is made for each call, so that its own retries have their effect once. */
  idempotencyKey?: string;
  /** Make every check, answer, and keep nothing. */
  dryRun?: boolean;
  requestId?: string;
  signal?: AbortSignal;
}

export interface Settings {
  /** Where the installation is served; `/api/compute` behind it counts for nothing. */
  baseUrl: string;
  token: string;
  /** Attempts after the first; 4 by default. */
  retries?: number;
  /** Milliseconds that one attempt may take altogether; 30000 by default. */
  timeoutMs?: number;
  /** Largest answer that is read, in bytes; 64 MiB by default. */
  mostAnswerBytes?: number;
  fetch?: typeof globalThis.fetch;
}

const TRANSIENT = new Set([429, 502, 503, 504]);
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 30_000;
const MOST_ANSWER_BYTES = 64 * 1024 * 1024;

/** Calls any method by its name; the clients below stand on it. */
export class Transport {
  readonly #settings: Settings;
  constructor(settings: Settings) {
    this.#settings = settings;
  }

  async call<Answer>(method: string, input: object, mutation: boolean, options: Options = {}): Promise<Answer> {
    const { baseUrl, token, retries = 4, timeoutMs = 30_000, mostAnswerBytes = MOST_ANSWER_BYTES } = this.#settings;
    const fetch = this.#settings.fetch ?? globalThis.fetch;
    if (!/^[A-Za-z][\w-]*(\.[A-Za-z][\w-]*)+$/.test(method)) throw new RangeError(`"${method}" is no method's name.`);
    const query = mutation && options.dryRun ? "?dryRun=true" : "";
    const url = `${baseUrl.replace(/\/+$/, "").replace(/\/api\/compute$/, "")}/api/compute/${method.replaceAll(".", "/")}${query}`;
    const headers: Record<string, string> = {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, application/problem+json",
    };
    if (mutation && !options.dryRun) headers["Idempotency-Key"] = options.idempotencyKey ?? crypto.randomUUID();
    if (options.requestId !== undefined) headers["X-Request-Id"] = options.requestId;
    const body = JSON.stringify(input);
    for (let attempt = 0; ; attempt++) {
      options.signal?.throwIfAborted();
      let refused: ApiError | undefined;
      let lost: unknown;
      try {
        // It counts until the last byte of the answer.
        const timeout = AbortSignal.timeout(timeoutMs);
        const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
        // Following a redirect would carry the token to wherever a proxy points.
        const response = await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" });
        if (response.status === 200) return answerOf<Answer>(response, await textOf(response, mostAnswerBytes));
        refused = await refusal(response, mostAnswerBytes);
      } catch (error) {
        options.signal?.throwIfAborted();
        if (error instanceof BadAnswer) throw error;
        lost = error;
      }
      const wait = attempt < retries ? waitMs(refused, attempt) : undefined;
      if (wait === undefined) throw refused ?? new ConnectionLost(`${method}: ${reason(lost)}`, { cause: lost });
      await sleep(wait, options.signal);
    }
  }

  async *pages<Item>(
    method: string,
    input: object,
    options: Options = {},
  ): AsyncGenerator<Item, void, undefined> {
    let cursor = "";
    do {
      const page: { items: Item[]; nextCursor?: string | null } = await this.call(method, { ...input, cursor }, false, options);
      yield* page.items;
      cursor = page.nextCursor ?? "";
    } while (cursor);
  }
}

/** Waits; an abort ends the wait and throws. */
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      if (signal?.aborted) reject(signal.reason as Error);
      else resolve();
    };
    const timer = setTimeout(done, ms);
    if (signal?.aborted) done();
    else signal?.addEventListener("abort", done);
  });
}

/** The answer's text, as long as it is no longer than `most` bytes. */
async function textOf(response: Response, most: number): Promise<string> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = response.body?.getReader();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    size += value.byteLength;
    if (size > most) {
      await reader.cancel();
      throw new BadAnswer(`The answer has more than ${most} bytes. Ask for less, or raise mostAnswerBytes.`);
    }
    parts.push(value);
  }
  const decoder = new TextDecoder();
  return parts.map((part) => decoder.decode(part, { stream: true })).join("") + decoder.decode();
}

function kindOf(response: Response): string {
  return (response.headers.get("Content-Type") ?? "").split(";")[0]!.trim().toLowerCase();
}

function answerOf<Answer>(response: Response, text: string): Answer {
  if (kindOf(response) !== "application/json") {
    throw new BadAnswer(`The answer is "${kindOf(response).slice(0, 60)}" instead of JSON; is this the installation's address?`);
  }
  try {
    return JSON.parse(text) as Answer;
  } catch (error) {
    throw new BadAnswer("The answer is no JSON.", { cause: error });
  }
}

async function refusal(response: Response, most: number): Promise<ApiError> {
  // Browsers hide a redirect that is not followed: its status is 0.
  const redirected = response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400);
  const after = response.headers.get("Retry-After") ?? "";
  let problem: Problem;
  try {
    if (!["application/json", "application/problem+json"].includes(kindOf(response))) throw new TypeError("no JSON");
    problem = { ...(JSON.parse(await textOf(response, most)) as Problem), status: response.status };
    if (typeof problem.code !== "string") throw new TypeError("no code");
  } catch (error) {
    // What cut the answer off may pass; what it says does not change.
    if (!(error instanceof SyntaxError || error instanceof TypeError) || error.cause) throw error;
    await response.body?.cancel().catch(() => undefined);
    problem = {
      type: "about:blank",
      title: "",
      status: response.status,
      detail: redirected
        ? `The server redirects to "${response.headers.get("Location") ?? ""}", and the token is not taken there.`
        : `The server answered ${response.status} without a problem document.`,
      instance: "",
      code: "",
    };
  }
  return new ApiError(problem, /^[0-9]+$/.test(after) ? Number(after) : undefined);
}

/** Why no answer came: `fetch failed` alone tells nobody that nothing listens there. */
function reason(lost: unknown): string {
  const cause = lost instanceof Error && lost.cause instanceof Error ? lost.cause : undefined;
  if (cause === undefined) return String(lost);
  // Of several addresses that refuse, the cause has no words but their code.
  return `${String(lost)}: ${cause.message || ("code" in cause ? String(cause.code) : cause.name)}`;
}

function waitMs(refused: ApiError | undefined, attempt: number): number | undefined {
  if (refused && !TRANSIENT.has(refused.problem.status) && refused.reason !== "IDEMPOTENCY_KEY_BUSY") return undefined;
  const wanted = (refused?.retryAfterSeconds ?? 0) * 1000;
  if (wanted > LONGEST_WAIT_MS) return undefined;
  const backoff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  // Jitter keeps callers that were refused together from coming back together.
  return Math.max(wanted, backoff * (0.5 + Math.random() / 2));
}

/** How to watch. */
export interface Watching {
  /** Milliseconds between two looks while something changes; 2000 by default. */
  everyMs?: number;
  /** Milliseconds that the wait grows to while nothing does; 30000 by default. */
  atMostMs?: number;
  /** The `position` of an earlier watch of the same method and input: what that one showed is not shown again. */
  since?: string;
  /** Milliseconds for which the installation may be away or busy before the watch gives up; 300000 by default. */
  patienceMs?: number;
}

/** How to watch a list whose items do not say themselves what tells them apart. */
export interface Identified<Item> extends Watching {
  identify: (item: Item) => string;
}

/** What happened to one item of a list; `before` is what this watch showed last. */
export type Change<Item> =
  | { kind: "added" | "changed"; id: string; item: Item; before?: Item }
  | { kind: "gone"; id: string; item?: undefined; before?: Item };

const MOST_ITEMS = 10_000;

/**
 * Iterates over what changes; the first look shows everything. It looks again over REST today, and a stream takes the
 * place of looking where an installation serves one. `options.signal` ends it with an error, `stop()` without.
 */
export class Watch<Shown> implements AsyncIterable<Shown> {
  readonly #transport: Transport;
  readonly #method: string;
  readonly #input: object;
  readonly #identify: ((item: never) => string) | undefined;
  readonly #watching: Required<Omit<Watching, "since">>;
  readonly #options: Options;
  readonly #stop = new AbortController();
  readonly #of: string;
  #digests = new Map<string, string>();
  readonly #items = new Map<string, unknown>();
  #waitMs = 0;
  #answeredAt = Date.now();

  /** `identify` is undefined for what is no list: its answers are shown, not the changes of its items. */
  constructor(
    transport: Transport,
    method: string,
    input: object,
    identify: ((item: never) => string) | undefined,
    watching: Watching = {},
    options: Options = {},
  ) {
    const { everyMs = 2_000, atMostMs = 30_000, patienceMs = 300_000, since = "" } = watching;
    if (!(everyMs > 0 && everyMs <= atMostMs)) throw new RangeError("Give 0 < everyMs <= atMostMs.");
    this.#transport = transport;
    this.#method = method;
    this.#input = input;
    this.#identify = identify;
    this.#watching = { everyMs, atMostMs, patienceMs };
    this.#options = options;
    this.#of = digest([method, input]);
    if (since) this.#digests = this.#read(since);
  }

  /** Where a later watch goes on with `since`: behind what this one showed last. */
  get position(): string {
    return encodeURIComponent(JSON.stringify([this.#of, [...this.#digests]]));
  }

  /** Ends the iteration, one that waits too. */
  stop(): void {
    this.#stop.abort();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Shown, void, undefined> {
    const outer = this.#options.signal;
    const signal = outer ? AbortSignal.any([outer, this.#stop.signal]) : this.#stop.signal;
    try {
      for (;;) {
        let changed = false;
        try {
          const found = await this.#look(signal);
          for (const change of this.#changes(found)) {
            changed = true;
            yield (this.#identify ? change : change.item) as Shown;
            if (this.#stop.signal.aborted) return;
          }
          this.#answeredAt = Date.now();
          const { everyMs, atMostMs } = this.#watching;
          this.#waitMs = changed || !this.#waitMs ? everyMs : Math.min(atMostMs, this.#waitMs * 1.5);
          await sleep(jittered(this.#waitMs), signal);
        } catch (error) {
          outer?.throwIfAborted();
          if (this.#stop.signal.aborted) return;
          await sleep(this.#afterFailure(error), signal);
        }
      }
    } catch (error) {
      outer?.throwIfAborted();
      if (!this.#stop.signal.aborted) throw error;
    }
  }

  async #look(signal: AbortSignal): Promise<Map<string, unknown>> {
    const options = { ...this.#options, signal };
    if (!this.#identify) return new Map([["", await this.#transport.call(this.#method, this.#input, false, options)]]);
    const found = new Map<string, unknown>();
    for await (const item of this.#transport.pages<never>(this.#method, this.#input, options)) {
      const id = this.#identify(item);
      if (found.has(id)) throw new RangeError(`Two items are identified by "${id}"; let identify tell them apart.`);
      found.set(id, item);
      if (found.size > MOST_ITEMS) throw new RangeError(`The list has more than ${MOST_ITEMS} items; narrow it.`);
    }
    return found;
  }

  /** What there is to show, each counted as shown when it is. */
  *#changes(found: Map<string, unknown>): Generator<Change<unknown>, void, undefined> {
    for (const id of [...this.#digests.keys()].filter((each) => !found.has(each))) {
      const before = this.#items.get(id);
      this.#digests.delete(id);
      this.#items.delete(id);
      yield before === undefined ? { kind: "gone", id } : { kind: "gone", id, before };
    }
    for (const [id, item] of found) {
      const seen = this.#digests.get(id);
      const before = this.#items.get(id);
      const now = digest(item);
      this.#digests.set(id, now);
      this.#items.set(id, item);
      const kind = seen === undefined ? "added" : "changed";
      if (seen !== now) yield before === undefined ? { kind, id, item } : { kind, id, item, before };
    }
  }

  /** Milliseconds to wait after a look that failed; throws what waiting cannot mend, or has not. */
  #afterFailure(error: unknown): number {
    const passes =
      error instanceof ConnectionLost ||
      (error instanceof ApiError && (TRANSIENT.has(error.problem.status) || error.code === "CURSOR_EXPIRED"));
    const asked = error instanceof ApiError ? (error.retryAfterSeconds ?? 0) * 1000 : 0;
    const left = this.#answeredAt + this.#watching.patienceMs - Date.now();
    if (!passes || Math.max(left, 0) <= asked) throw error;
    const { everyMs, atMostMs } = this.#watching;
    this.#waitMs = Math.min(atMostMs, Math.max(everyMs, this.#waitMs * 2));
    return Math.min(left, Math.max(asked, jittered(this.#waitMs)));
  }

  #read(since: string): Map<string, string> {
    let read: unknown;
    try {
      read = JSON.parse(decodeURIComponent(since));
    } catch {
      read = undefined;
    }
    if (!Array.isArray(read) || !Array.isArray(read[1])) throw new RangeError("This is no position of a watch.");
    if (read[0] !== this.#of) throw new RangeError("The position is another method's or another input's.");
    return new Map(read[1] as [string, string][]);
  }
}

/** Watchers that began together must not look together for ever. */
function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2);
}

/** A short text that is another one when the value is: two hashes of 32 bits (FNV-1a) over its canonical JSON. */
function digest(value: unknown): string {
  const text = JSON.stringify(value, (_, each: unknown) =>
    each !== null && typeof each === "object" && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
  let first = 0x811c9dc5;
  let second = 0x1000193;
  for (let index = 0; index < text.length; index++) {
    first = Math.imul(first ^ text.charCodeAt(index), 0x01000193);
    second = Math.imul(second ^ text.charCodeAt(index), 0x85ebca6b);
  }
  return (first >>> 0).toString(36) + "-" + (second >>> 0).toString(36);
}
