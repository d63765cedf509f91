// A client of one installation: `manage.py compute_client typescript` writes it anew on a change.

/** Refusal codes; a newer server may send others. */
export type ErrorCode = "INVALID_CONFIG" | "INVALID_INPUT" | "UNAUTHENTICATED" | "ACCESS_DENIED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "CONFLICT" | "GENERATION_MISMATCH" | "IN_USE" | "NO_CAPACITY" | "INVALID_STATE" | "CURSOR_EXPIRED" | "LENGTH_REQUIRED" | "PLAN_STALE" | "PAYLOAD_TOO_LARGE" | "UNSUPPORTED_MEDIA_TYPE" | "HELD_FOR_APPROVAL" | "RATE_LIMITED" | "INTERNAL_ERROR" | "STORAGE_BUSY" | (string & {});

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

/** Everything that is paused, reconcilers first. */
export interface AllPaused {
  paused: (Paused)[];
}

/** A principal that may. */
export interface Allowed {
  principal: string;
}

/** The ids that are the tenant's and allowed, in the order given. */
export interface AllowedIds {
  ids: (string)[];
  truncated: boolean;
}

/** One answer for each question, in their order. */
export interface BatchChecked {
  results: (Checked)[];
}

/** A module that has not let go of the tenant, how to mend it, and since when it answers so. */
export interface BlockedBy {
  module: string;
  answer: string;
  message: string;
  mend: string;
  since: string;
  passes: number;
}

/** What can be granted: the actions and resource types of every hosted module and plugin. */
export interface CatalogAnswer {
  actions: (string)[];
  resourceTypes: (string)[];
  roles: (RoleMeaning)[];
}

/** The answer and its machine-readable reason. */
export interface Checked {
  allowed: boolean;
  reason: string;
}

/** A grant that was looked at. It counts when it is active, reaches the tenant and matches the action. */
export interface Considered {
  grantId: string;
  effect: string;
  role: string;
  actions: (string)[];
  tenantId: string;
  inherit: boolean;
  expiresAt: string | null;
  active: boolean;
  reaches: boolean;
  matches: boolean;
  counts: boolean;
}

/** How many widgets the tenant has. */
export interface Counted {
  count: number;
}

/** How far a teardown is. ``phase`` is the state, or ``blocked`` while a hook fails. */
export interface DeletionStatus {
  tenantId: string;
  phase: string;
  reason: string;
  startedAt: string | null;
  passes: number;
  lastPassAt: string | null;
  teardownDoneAt: string | null;
  blockers: (BlockedBy)[];
}

/** Why. ``decided_by`` is the grant, or the tenant whose ceiling it was. */
export interface Explained {
  allowed: boolean;
  reason: string;
  decidedBy: string;
  path: (string)[];
  considered: (Considered)[];
}

/** Something an operator can act on. */
export interface Finding {
  check: string;
  severity: "error" | "info" | "warning" | (string & {});
  message: string;
  fix: string;
  count?: number | null;
}

/** A grant and its state by the database's clock. */
export interface Grant {
  id: string;
  tenantId: string;
  principal: string;
  effect: string;
  role: string;
  actions: (string)[];
  resourceType: string;
  resourceId: string;
  inherit: boolean;
  state: string;
  startsAt: string | null;
  expiresAt: string | null;
  reason: string;
  breakGlass: boolean;
  createdAt: string;
  createdBy: string;
  revokedAt: string | null;
  revokedBy: string;
}

/** One hosted module: its names, its version where its package states one, and how much it brings. */
export interface HostedModule {
  name: string;
  label: string;
  path: string;
  pluginId: string | null;
  version: string | null;
  migrations: number;
  methods: number;
  reconcilers: number;
  commandKinds: number;
  extensions: number;
  actions: number;
}

/** Modules in hosted order; ``fingerprint`` is the same for processes that host the same. */
export interface HostedModules {
  fingerprint: string;
  modules: (HostedModule)[];
}

/** A token and its secret, which is shown this once. */
export interface NewSecret {
  token: Token;
  secret: string;
}

/** One of several questions about a tenant. */
export interface OneCheck {
  action: string;
  principal?: string | null;
  resource?: ResourceRef | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageAllowed {
  items: (Allowed)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageGrant {
  items: (Grant)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PagePerson {
  items: (Person)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageProfile {
  items: (Profile)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageQueuedKey {
  items: (QueuedKey)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageRole {
  items: (Role)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageServiceAccount {
  items: (ServiceAccount)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface PageToken {
  items: (Token)[];
  nextCursor?: string | null;
}

/** A paused reconciler or member: the one that is null is not meant. */
export interface Paused {
  kind: string | null;
  member: string | null;
  reason: string;
  pausedBy: string;
  pausedAt: string;
}

/** Somebody whom rights were ever granted to, or who was disabled. */
export interface Person {
  principal: string;
  kind: string;
  disabled: boolean;
  disabledAt: string | null;
  createdAt: string;
}

/** The widget that was poked. */
export interface Poked {
  poked: string;
}

/** A profile that a hosted module registered. */
export interface Profile {
  name: string;
  version: string;
  module: string;
  document: Record<string, unknown>;
}

/** A key that waits, is due or runs. ``shard`` is -1 for a reconciler that is not sharded. */
export interface QueuedKey {
  kind: string;
  key: string;
  shard: number;
  generation: number;
  notBefore: string;
  enqueuedAt: string;
  attempts: number;
  lastError: string | null;
  lastErrorAt: string | null;
}

/** The same answer from ``compute.self_check()``, ``system.selfCheck`` and ``manage.py doctor``. */
export interface Report {
  ok: boolean;
  findings: (Finding)[];
}

/** The key that is due now. */
export interface Requeued {
  kind: string;
  key: string;
}

/** A single record of the tenant. */
export interface ResourceRef {
  type: string;
  id: string;
}

/** What goes on. */
export interface Resumed {
  kind: string | null;
  member: string | null;
}

/** A role; ``tenant_id`` is empty for a built-in one. */
export interface Role {
  id: string;
  tenantId: string;
  permits: (string)[];
  butNot: (string)[];
  meaning: string;
}

/** A role that every installation has. */
export interface RoleMeaning {
  role: string;
  meaning: string;
}

/** A program's principal; it has no rights until they are granted. */
export interface ServiceAccount {
  principal: string;
  tenantId: string;
  label: string;
  disabled: boolean;
  createdAt: string;
}

/** A token without its secret. ``makers`` made it for another principal; it is worth no more than each of them. */
export interface Token {
  id: string;
  hint: string;
  principal: string;
  tenantId: string;
  actsIn: string | null;
  actions: (string)[] | null;
  label: string;
  state: string;
  createdAt: string;
  createdBy: string;
  expiresAt: string | null;
  revokedAt: string | null;
  lastUsedAt: string | null;
  replacedBy: string | null;
  makers: (string)[];
}

/** Versions of what serves. */
export interface Versions {
  core: string;
  django: string;
  python: string;
  postgresql: string;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface ContractPagesPage {
  items: (TenancyTenant)[];
  nextCursor?: string | null;
}

/** Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one. */
export interface ContractPagesPage2 {
  items: (IamTreeTenant)[];
  nextCursor?: string | null;
}

/** A tenant's place. ``path`` begins at the root. */
export interface IamTreeTenant {
  id: string;
  parentId: string | null;
  kind: string;
  name: string;
  path: (string)[];
  ceiling: (string)[] | null;
}

/** A tenant's state; ``changed_at`` is null for one whose state was never changed. */
export interface TenancyTenant {
  tenantId: string;
  state: string;
  reason: string;
  changedAt: string | null;
  teardownDoneAt: string | null;
}

/** breakGlass. */
export class BreakGlassMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Become an owner of the tenant for some minutes; the event iam.break-glass-activated is the alarm. */
  activate(input: { tenantId: string; reason: string; minutes?: number }, options?: Options): Promise<Grant> {
    return this.#transport.call("breakGlass.activate", input, true, options);
  }
  /** End it before its time. */
  end(input: { grantId: string }, options?: Options): Promise<Grant> {
    return this.#transport.call("breakGlass.end", input, true, options);
  }
  /** Show who broke the glass, when and why; also of a tenant that is gone. */
  list(input: { tenantId: string; cursor?: string; limit?: number }, options?: Options): Promise<PageGrant> {
    return this.#transport.call("breakGlass.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { tenantId: string; limit?: number }, options?: Options): AsyncGenerator<Grant, void, undefined> {
    return this.#transport.pages("breakGlass.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { tenantId: string; limit?: number }, watching: Partial<Identified<Grant>> = {}, options?: Options): Watch<Change<Grant>> {
    return new Watch(this.#transport, "breakGlass.list", input, watching.identify ?? ((item: Grant) => item.id), watching, options);
  }
}

/** grants. */
export class GrantsMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Give somebody a role or actions, never more than the caller holds, or forbid somebody actions. */
  create(input: { tenantId: string; principal: string; effect?: "forbid" | "permit"; role?: string | null; actions?: (string)[] | null; resource?: ResourceRef | null; inherit?: boolean; startsAt?: string | null; expiresAt?: string | null; reason?: string }, options?: Options): Promise<Grant> {
    return this.#transport.call("grants.create", input, true, options);
  }
  /** Show a grant. */
  get(input: { grantId: string }, options?: Options): Promise<Grant> {
    return this.#transport.call("grants.get", input, false, options);
  }
  /** The answers of `get`, as they come. */
  getWatch(input: { grantId: string }, watching?: Watching, options?: Options): Watch<Grant> {
    return new Watch(this.#transport, "grants.get", input, undefined, watching, options);
  }
  /** List a tenant's own grants by id, ended ones included. */
  list(input: { tenantId: string; cursor?: string; limit?: number; principal?: string | null; role?: string | null; state?: "active" | "expired" | "pending" | "revoked" | null }, options?: Options): Promise<PageGrant> {
    return this.#transport.call("grants.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { tenantId: string; limit?: number; principal?: string | null; role?: string | null; state?: "active" | "expired" | "pending" | "revoked" | null }, options?: Options): AsyncGenerator<Grant, void, undefined> {
    return this.#transport.pages("grants.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { tenantId: string; limit?: number; principal?: string | null; role?: string | null; state?: "active" | "expired" | "pending" | "revoked" | null }, watching: Partial<Identified<Grant>> = {}, options?: Options): Watch<Change<Grant>> {
    return new Watch(this.#transport, "grants.list", input, watching.identify ?? ((item: Grant) => item.id), watching, options);
  }
  /** Take a grant back; it acts at the next request of whoever had it. */
  revoke(input: { grantId: string }, options?: Options): Promise<Grant> {
    return this.#transport.call("grants.revoke", input, true, options);
  }
}

/** iam. */
export class IamMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Answer up to 50 questions at once. */
  batchCheck(input: { tenantId: string; checks: (OneCheck)[] }, options?: Options): Promise<BatchChecked> {
    return this.#transport.call("iam.batchCheck", input, false, options);
  }
  /** The answers of `batchCheck`, as they come. */
  batchCheckWatch(input: { tenantId: string; checks: (OneCheck)[] }, watching?: Watching, options?: Options): Watch<BatchChecked> {
    return new Watch(this.#transport, "iam.batchCheck", input, undefined, watching, options);
  }
  /** List the actions and resource types that can be granted, and the built-in roles. */
  catalog(input: { tenantId: string }, options?: Options): Promise<CatalogAnswer> {
    return this.#transport.call("iam.catalog", input, false, options);
  }
  /** The answers of `catalog`, as they come. */
  catalogWatch(input: { tenantId: string }, watching?: Watching, options?: Options): Watch<CatalogAnswer> {
    return new Watch(this.#transport, "iam.catalog", input, undefined, watching, options);
  }
  /** Tell whether a principal may do an action. */
  check(input: { tenantId: string; action: string; principal?: string | null; resource?: ResourceRef | null }, options?: Options): Promise<Checked> {
    return this.#transport.call("iam.check", input, false, options);
  }
  /** The answers of `check`, as they come. */
  checkWatch(input: { tenantId: string; action: string; principal?: string | null; resource?: ResourceRef | null }, watching?: Watching, options?: Options): Watch<Checked> {
    return new Watch(this.#transport, "iam.check", input, undefined, watching, options);
  }
  /** Tell why a principal may or may not do an action: every grant on the way from the root, and what decided. */
  explain(input: { tenantId: string; action: string; principal?: string | null; resource?: ResourceRef | null }, options?: Options): Promise<Explained> {
    return this.#transport.call("iam.explain", input, false, options);
  }
  /** The answers of `explain`, as they come. */
  explainWatch(input: { tenantId: string; action: string; principal?: string | null; resource?: ResourceRef | null }, watching?: Watching, options?: Options): Watch<Explained> {
    return new Watch(this.#transport, "iam.explain", input, undefined, watching, options);
  }
  /** Tell which of up to 1,000 resources a principal may do an action on; never of what is not the tenant's. */
  listAllowed(input: { tenantId: string; action: string; resourceType?: string; ids?: (string)[] | null; principal?: string | null }, options?: Options): Promise<AllowedIds> {
    return this.#transport.call("iam.listAllowed", input, false, options);
  }
  /** The answers of `listAllowed`, as they come. */
  listAllowedWatch(input: { tenantId: string; action: string; resourceType?: string; ids?: (string)[] | null; principal?: string | null }, watching?: Watching, options?: Options): Watch<AllowedIds> {
    return new Watch(this.#transport, "iam.listAllowed", input, undefined, watching, options);
  }
  /** List the principals that may do an action, by id. */
  whoCan(input: { tenantId: string; action: string; cursor?: string; limit?: number; resource?: ResourceRef | null }, options?: Options): Promise<PageAllowed> {
    return this.#transport.call("iam.whoCan", input, false, options);
  }
  /** Every item of `whoCan`, page after page. */
  whoCanAll(input: { tenantId: string; action: string; limit?: number; resource?: ResourceRef | null }, options?: Options): AsyncGenerator<Allowed, void, undefined> {
    return this.#transport.pages("iam.whoCan", input, options);
  }
  /** Changes of the items of `whoCan`, as they come. */
  whoCanWatch(input: { tenantId: string; action: string; limit?: number; resource?: ResourceRef | null }, watching: Identified<Allowed>, options?: Options): Watch<Change<Allowed>> {
    return new Watch(this.#transport, "iam.whoCan", input, watching.identify, watching, options);
  }
}

/** plugins.acme.widgets. */
export class PluginsAcmeWidgetsMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Count a tenant's widgets. */
  count(input: { tenantId: string }, options?: Options): Promise<Counted> {
    return this.#transport.call("plugins.acme.widgets.count", input, false, options);
  }
  /** The answers of `count`, as they come. */
  countWatch(input: { tenantId: string }, watching?: Watching, options?: Options): Watch<Counted> {
    return new Watch(this.#transport, "plugins.acme.widgets.count", input, undefined, watching, options);
  }
  /** Make a widget, tell of it, and wake the reconciler for its tenant. */
  poke(input: { tenantId: string; widgetId: string }, options?: Options): Promise<Poked> {
    return this.#transport.call("plugins.acme.widgets.poke", input, true, options);
  }
}

/** plugins.acme. */
export class PluginsAcmeMethods {
  readonly widgets: PluginsAcmeWidgetsMethods;
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
    this.widgets = new PluginsAcmeWidgetsMethods(transport);
  }
  /** What the groups call through. */
  get transport(): Transport {
    return this.#transport;
  }
}

/** plugins. */
export class PluginsMethods {
  readonly acme: PluginsAcmeMethods;
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
    this.acme = new PluginsAcmeMethods(transport);
  }
  /** What the groups call through. */
  get transport(): Transport {
    return this.#transport;
  }
}

/** principals. */
export class PrincipalsMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Refuse everything to a person from the next request on: sessions, tokens, and what a provider vouches for. */
  disable(input: { principal: string; reason: string }, options?: Options): Promise<Person> {
    return this.#transport.call("principals.disable", input, true, options);
  }
  /** Let a disabled person in again; the caller must hold what that person gets back. */
  enable(input: { principal: string }, options?: Options): Promise<Person> {
    return this.#transport.call("principals.enable", input, true, options);
  }
  /** Show a person. */
  get(input: { principal: string }, options?: Options): Promise<Person> {
    return this.#transport.call("principals.get", input, false, options);
  }
  /** The answers of `get`, as they come. */
  getWatch(input: { principal: string }, watching?: Watching, options?: Options): Watch<Person> {
    return new Watch(this.#transport, "principals.get", input, undefined, watching, options);
  }
  /** List people that rights were ever granted to by id, disabled ones included. */
  list(input: { cursor?: string; limit?: number; kind?: "external" | "user" | null; disabled?: boolean | null } = {}, options?: Options): Promise<PagePerson> {
    return this.#transport.call("principals.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { limit?: number; kind?: "external" | "user" | null; disabled?: boolean | null } = {}, options?: Options): AsyncGenerator<Person, void, undefined> {
    return this.#transport.pages("principals.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { limit?: number; kind?: "external" | "user" | null; disabled?: boolean | null }, watching: Identified<Person>, options?: Options): Watch<Change<Person>> {
    return new Watch(this.#transport, "principals.list", input, watching.identify, watching, options);
  }
}

/** roles. */
export class RolesMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Make a role that can be granted in the tenant and below. */
  create(input: { tenantId: string; name: string; permits: (string)[]; butNot?: (string)[] }, options?: Options): Promise<Role> {
    return this.#transport.call("roles.create", input, true, options);
  }
  /** End a role that no grant conveys. */
  delete(input: { roleId: string }, options?: Options): Promise<Role> {
    return this.#transport.call("roles.delete", input, true, options);
  }
  /** List the roles that can be granted in a tenant: the built-in ones, then its own and those above, by id. */
  list(input: { tenantId: string; cursor?: string; limit?: number }, options?: Options): Promise<PageRole> {
    return this.#transport.call("roles.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { tenantId: string; limit?: number }, options?: Options): AsyncGenerator<Role, void, undefined> {
    return this.#transport.pages("roles.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { tenantId: string; limit?: number }, watching: Partial<Identified<Role>> = {}, options?: Options): Watch<Change<Role>> {
    return new Watch(this.#transport, "roles.list", input, watching.identify ?? ((item: Role) => item.id), watching, options);
  }
  /** Change what a role conveys, for everybody who has it and never beyond what the caller could give them. */
  update(input: { roleId: string; permits: (string)[]; butNot?: (string)[] }, options?: Options): Promise<Role> {
    return this.#transport.call("roles.update", input, true, options);
  }
}

/** serviceAccounts. */
export class ServiceAccountsMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Make a service account; grants give it rights and tokens let it in. */
  create(input: { tenantId: string; name: string; label: string }, options?: Options): Promise<ServiceAccount> {
    return this.#transport.call("serviceAccounts.create", input, true, options);
  }
  /** Refuse everything to a service account from its next request on, its tokens included. */
  disable(input: { principal: string }, options?: Options): Promise<ServiceAccount> {
    return this.#transport.call("serviceAccounts.disable", input, true, options);
  }
  /** Let a disabled service account in again; the caller must hold what it gets back. */
  enable(input: { principal: string }, options?: Options): Promise<ServiceAccount> {
    return this.#transport.call("serviceAccounts.enable", input, true, options);
  }
  /** List a tenant's service accounts by id. */
  list(input: { tenantId: string; cursor?: string; limit?: number }, options?: Options): Promise<PageServiceAccount> {
    return this.#transport.call("serviceAccounts.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { tenantId: string; limit?: number }, options?: Options): AsyncGenerator<ServiceAccount, void, undefined> {
    return this.#transport.pages("serviceAccounts.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { tenantId: string; limit?: number }, watching: Identified<ServiceAccount>, options?: Options): Watch<Change<ServiceAccount>> {
    return new Watch(this.#transport, "serviceAccounts.list", input, watching.identify, watching, options);
  }
}

/** system. */
export class SystemMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** List the hosted modules in hosted order. */
  modules(input: {  } = {}, options?: Options): Promise<HostedModules> {
    return this.#transport.call("system.modules", input, false, options);
  }
  /** The answers of `modules`, as they come. */
  modulesWatch(input: {  } = {}, watching?: Watching, options?: Options): Watch<HostedModules> {
    return new Watch(this.#transport, "system.modules", input, undefined, watching, options);
  }
  /** List the profiles of hosted modules by name and version. */
  profiles(input: { cursor?: string; limit?: number; name?: string | null } = {}, options?: Options): Promise<PageProfile> {
    return this.#transport.call("system.profiles", input, false, options);
  }
  /** Every item of `profiles`, page after page. */
  profilesAll(input: { limit?: number; name?: string | null } = {}, options?: Options): AsyncGenerator<Profile, void, undefined> {
    return this.#transport.pages("system.profiles", input, options);
  }
  /** Changes of the items of `profiles`, as they come. */
  profilesWatch(input: { limit?: number; name?: string | null }, watching: Identified<Profile>, options?: Options): Watch<Change<Profile>> {
    return new Watch(this.#transport, "system.profiles", input, watching.identify, watching, options);
  }
  /** Report what an operator should act on, as `manage.py doctor` does. */
  selfCheck(input: {  } = {}, options?: Options): Promise<Report> {
    return this.#transport.call("system.selfCheck", input, false, options);
  }
  /** The answers of `selfCheck`, as they come. */
  selfCheckWatch(input: {  } = {}, watching?: Watching, options?: Options): Watch<Report> {
    return new Watch(this.#transport, "system.selfCheck", input, undefined, watching, options);
  }
  /** Tell the versions of the core, Django, Python and PostgreSQL. */
  version(input: {  } = {}, options?: Options): Promise<Versions> {
    return this.#transport.call("system.version", input, false, options);
  }
  /** The answers of `version`, as they come. */
  versionWatch(input: {  } = {}, watching?: Watching, options?: Options): Watch<Versions> {
    return new Watch(this.#transport, "system.version", input, undefined, watching, options);
  }
}

/** tenantTree. */
export class TenantTreeMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Make a tenant below another one. */
  create(input: { parentId: string; tenantId: string; kind: "organisation" | "project"; name: string; owner?: string | null; ceiling?: (string)[] | null }, options?: Options): Promise<IamTreeTenant> {
    return this.#transport.call("tenantTree.create", input, true, options);
  }
  /** Show where a tenant stands, or stood: the list above it still shows one that is gone. */
  get(input: { tenantId: string }, options?: Options): Promise<IamTreeTenant> {
    return this.#transport.call("tenantTree.get", input, false, options);
  }
  /** The answers of `get`, as they come. */
  getWatch(input: { tenantId: string }, watching?: Watching, options?: Options): Watch<IamTreeTenant> {
    return new Watch(this.#transport, "tenantTree.get", input, undefined, watching, options);
  }
  /** List the tenants right below one by id, except those that `get` would refuse to this caller. */
  list(input: { tenantId: string; cursor?: string; limit?: number }, options?: Options): Promise<ContractPagesPage2> {
    return this.#transport.call("tenantTree.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { tenantId: string; limit?: number }, options?: Options): AsyncGenerator<IamTreeTenant, void, undefined> {
    return this.#transport.pages("tenantTree.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { tenantId: string; limit?: number }, watching: Partial<Identified<IamTreeTenant>> = {}, options?: Options): Watch<Change<IamTreeTenant>> {
    return new Watch(this.#transport, "tenantTree.list", input, watching.identify ?? ((item: IamTreeTenant) => item.id), watching, options);
  }
  /** Bound what may be done in a tenant and below; said by the tenant above it, within its own ceiling. */
  setCeiling(input: { parentId: string; tenantId: string; ceiling: (string)[] | null }, options?: Options): Promise<IamTreeTenant> {
    return this.#transport.call("tenantTree.setCeiling", input, true, options);
  }
}

/** tenants. */
export class TenantsMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Begin the teardown of a tenant: nothing can be added to it, and every module ends what it holds for it. */
  delete(input: { tenantId: string; reason: string }, options?: Options): Promise<TenancyTenant> {
    return this.#transport.call("tenants.delete", input, true, options);
  }
  /** Tell how far a tenant's teardown is, and which modules have not let go of it. */
  deletionStatus(input: { tenantId: string }, options?: Options): Promise<DeletionStatus> {
    return this.#transport.call("tenants.deletionStatus", input, false, options);
  }
  /** The answers of `deletionStatus`, as they come. */
  deletionStatusWatch(input: { tenantId: string }, watching?: Watching, options?: Options): Watch<DeletionStatus> {
    return new Watch(this.#transport, "tenants.deletionStatus", input, undefined, watching, options);
  }
  /** Tell a tenant's state. */
  get(input: { tenantId: string }, options?: Options): Promise<TenancyTenant> {
    return this.#transport.call("tenants.get", input, false, options);
  }
  /** The answers of `get`, as they come. */
  getWatch(input: { tenantId: string }, watching?: Watching, options?: Options): Watch<TenancyTenant> {
    return new Watch(this.#transport, "tenants.get", input, undefined, watching, options);
  }
  /** List tenants whose state was ever changed by id, except those that `get` would refuse to this caller. */
  list(input: { cursor?: string; limit?: number; state?: "active" | "deleting" | "suspended" | "torn_down" | null } = {}, options?: Options): Promise<ContractPagesPage> {
    return this.#transport.call("tenants.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { limit?: number; state?: "active" | "deleting" | "suspended" | "torn_down" | null } = {}, options?: Options): AsyncGenerator<TenancyTenant, void, undefined> {
    return this.#transport.pages("tenants.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { limit?: number; state?: "active" | "deleting" | "suspended" | "torn_down" | null }, watching: Identified<TenancyTenant>, options?: Options): Watch<Change<TenancyTenant>> {
    return new Watch(this.#transport, "tenants.list", input, watching.identify, watching, options);
  }
  /** Let a suspended tenant change things again. */
  resume(input: { tenantId: string; reason: string }, options?: Options): Promise<TenancyTenant> {
    return this.#transport.call("tenants.resume", input, true, options);
  }
  /** Refuse every change to a tenant from now on; what runs goes on running, and reads are allowed. */
  suspend(input: { tenantId: string; reason: string }, options?: Options): Promise<TenancyTenant> {
    return this.#transport.call("tenants.suspend", input, true, options);
  }
}

/** tokens. */
export class TokensMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** Make a token and show its secret, once. */
  create(input: { tenantId: string; label: string; principal?: string | null; actsIn?: string | null; everywhere?: boolean; actions?: (string)[] | null; expiresAt?: string | null }, options?: Options): Promise<NewSecret> {
    return this.#transport.call("tokens.create", input, true, options);
  }
  /** List tokens by id, ended ones included; never a secret. */
  list(input: { tenantId: string; cursor?: string; limit?: number }, options?: Options): Promise<PageToken> {
    return this.#transport.call("tokens.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { tenantId: string; limit?: number }, options?: Options): AsyncGenerator<Token, void, undefined> {
    return this.#transport.pages("tokens.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { tenantId: string; limit?: number }, watching: Partial<Identified<Token>> = {}, options?: Options): Watch<Change<Token>> {
    return new Watch(this.#transport, "tokens.list", input, watching.identify ?? ((item: Token) => item.id), watching, options);
  }
  /** End a token; it is refused from the next request on. */
  revoke(input: { tokenId: string }, options?: Options): Promise<Token> {
    return this.#transport.call("tokens.revoke", input, true, options);
  }
  /** Put a new secret in a token's place; the old one stays good for the grace that is given. */
  rotate(input: { tokenId: string; graceSeconds?: number }, options?: Options): Promise<NewSecret> {
    return this.#transport.call("tokens.rotate", input, true, options);
  }
}

/** work. */
export class WorkMethods {
  readonly #transport: Transport;
  constructor(transport: Transport) {
    this.#transport = transport;
  }
  /** List queued keys by reconciler and key. */
  list(input: { cursor?: string; limit?: number; kind?: string | null; attempts?: number } = {}, options?: Options): Promise<PageQueuedKey> {
    return this.#transport.call("work.list", input, false, options);
  }
  /** Every item of `list`, page after page. */
  listAll(input: { limit?: number; kind?: string | null; attempts?: number } = {}, options?: Options): AsyncGenerator<QueuedKey, void, undefined> {
    return this.#transport.pages("work.list", input, options);
  }
  /** Changes of the items of `list`, as they come. */
  listWatch(input: { limit?: number; kind?: string | null; attempts?: number }, watching: Identified<QueuedKey>, options?: Options): Watch<Change<QueuedKey>> {
    return new Watch(this.#transport, "work.list", input, watching.identify, watching, options);
  }
  /** Start no more keys of a reconciler, or on a member; what runs ends by itself, and keys wait. */
  pause(input: { reason: string; kind?: string | null; member?: string | null }, options?: Options): Promise<Paused> {
    return this.#transport.call("work.pause", input, true, options);
  }
  /** List what is paused, by whom and why. */
  paused(input: {  } = {}, options?: Options): Promise<AllPaused> {
    return this.#transport.call("work.paused", input, false, options);
  }
  /** The answers of `paused`, as they come. */
  pausedWatch(input: {  } = {}, watching?: Watching, options?: Options): Watch<AllPaused> {
    return new Watch(this.#transport, "work.paused", input, undefined, watching, options);
  }
  /** Make a queued key due now, whatever its backoff. */
  requeue(input: { kind: string; key: string }, options?: Options): Promise<Requeued> {
    return this.#transport.call("work.requeue", input, true, options);
  }
  /** Let a paused reconciler or member go on, also one that is hosted or lives no more. */
  resume(input: { kind?: string | null; member?: string | null } = {}, options?: Options): Promise<Resumed> {
    return this.#transport.call("work.resume", input, true, options);
  }
}

/** Every hosted method. */
export class Client {
  readonly breakGlass: BreakGlassMethods;
  readonly grants: GrantsMethods;
  readonly iam: IamMethods;
  readonly plugins: PluginsMethods;
  readonly principals: PrincipalsMethods;
  readonly roles: RolesMethods;
  readonly serviceAccounts: ServiceAccountsMethods;
  readonly system: SystemMethods;
  readonly tenantTree: TenantTreeMethods;
  readonly tenants: TenantsMethods;
  readonly tokens: TokensMethods;
  readonly work: WorkMethods;
  readonly #transport: Transport;
  constructor(settings: Settings | Transport) {
    const transport = settings instanceof Transport ? settings : new Transport(settings);
    this.#transport = transport;
    this.breakGlass = new BreakGlassMethods(transport);
    this.grants = new GrantsMethods(transport);
    this.iam = new IamMethods(transport);
    this.plugins = new PluginsMethods(transport);
    this.principals = new PrincipalsMethods(transport);
    this.roles = new RolesMethods(transport);
    this.serviceAccounts = new ServiceAccountsMethods(transport);
    this.system = new SystemMethods(transport);
    this.tenantTree = new TenantTreeMethods(transport);
    this.tenants = new TenantsMethods(transport);
    this.tokens = new TokensMethods(transport);
    this.work = new WorkMethods(transport);
  }
  /** What the groups call through. */
  get transport(): Transport {
    return this.#transport;
  }
}
