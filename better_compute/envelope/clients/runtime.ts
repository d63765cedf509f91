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
  /** Where the installation is served, without `/api/compute`. */
  baseUrl: string;
  token: string;
  /** Attempts after the first; 4 by default. */
  retries?: number;
  /** Milliseconds that one attempt may take; 30000 by default. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

const TRANSIENT = new Set([429, 502, 503, 504]);
const FIRST_WAIT_MS = 200;
const LONGEST_WAIT_MS = 30_000;

/** Calls any method by its name; the clients below stand on it. */
export class Transport {
  readonly #settings: Settings;
  constructor(settings: Settings) {
    this.#settings = settings;
  }

  async call<Answer>(method: string, input: object, mutation: boolean, options: Options = {}): Promise<Answer> {
    const { baseUrl, token, retries = 4, timeoutMs = 30_000, fetch = globalThis.fetch } = this.#settings;
    const query = mutation && options.dryRun ? "?dryRun=true" : "";
    const url = `${baseUrl.replace(/\/+$/, "")}/api/compute/${method.replaceAll(".", "/")}${query}`;
    const headers: Record<string, string> = {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      Accept: "application/json, application/problem+json",
    };
    if (mutation && !options.dryRun) headers["Idempotency-Key"] = options.idempotencyKey ?? crypto.randomUUID();
    if (options.requestId !== undefined) headers["X-Request-Id"] = options.requestId;
    const body = JSON.stringify(input);
    for (let attempt = 0; ; attempt++) {
      let refused: ApiError | undefined;
      let lost: unknown;
      try {
        const timeout = AbortSignal.timeout(timeoutMs);
        const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
        // A redirect would carry the token to wherever a proxy points.
        const response = await fetch(url, { method: "POST", headers, body, signal, redirect: "error" });
        if (response.status === 200) return (await response.json()) as Answer;
        refused = await refusal(response);
      } catch (error) {
        options.signal?.throwIfAborted();
        lost = error;
      }
      const wait = attempt < retries ? waitMs(refused, attempt) : undefined;
      if (wait === undefined) throw refused ?? new ConnectionLost(`${method}: ${String(lost)}`, { cause: lost });
      await new Promise((resolve) => setTimeout(resolve, wait));
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

async function refusal(response: Response): Promise<ApiError> {
  const text = await response.text();
  const after = response.headers.get("Retry-After") ?? "";
  let problem: Problem;
  try {
    problem = JSON.parse(text) as Problem;
    if (typeof problem.code !== "string") throw new TypeError("no code");
  } catch {
    problem = {
      type: "about:blank",
      title: "",
      status: response.status,
      detail: `The server answered ${response.status} without a problem document.`,
      instance: "",
      code: "",
    };
  }
  return new ApiError(problem, /^[0-9]+$/.test(after) ? Number(after) : undefined);
}

function waitMs(refused: ApiError | undefined, attempt: number): number | undefined {
  if (refused && !TRANSIENT.has(refused.problem.status) && refused.reason !== "IDEMPOTENCY_KEY_BUSY") return undefined;
  const wanted = (refused?.retryAfterSeconds ?? 0) * 1000;
  if (wanted > LONGEST_WAIT_MS) return undefined;
  const backoff = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt);
  // Jitter keeps callers that were refused together from coming back together.
  return Math.max(wanted, backoff * (0.5 + Math.random() / 2));
}
