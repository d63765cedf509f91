// The reference page: reads the OpenAPI document and calls methods. Everything shown is set as text, never as markup.
const base = document.body.dataset.base;
const csrf = document.body.dataset.csrf;
const by = (id) => document.getElementById(id);
let token = "";
let api = null;

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const headers = (more = {}) => (token ? { Authorization: `Bearer ${token}`, ...more } : { "X-CSRFToken": csrf, ...more });
const dotted = (path) => path.slice(1).replaceAll("/", ".");
const resolve = (schema) => (schema?.$ref ? api.components.schemas[decodeURIComponent(schema.$ref.split("/").pop())] : schema) ?? {};

async function read() {
  by("state")?.replaceChildren("Reading the document…");
  let response;
  try {
    response = await fetch(`${base}openapi.json`, { headers: headers(), credentials: token ? "omit" : "same-origin" });
  } catch (error) {
    return say(`The installation does not answer: ${error.message}`);
  }
  const document_ = await response.json().catch(() => ({}));
  if (!response.ok) {
    return say(`${document_.code ?? response.status}: ${document_.detail ?? ""} Give a bearer token above, or log in to the admin.`);
  }
  api = document_;
  list();
  show();
}

function say(text) {
  by("detail").replaceChildren(make("p", { id: "state", role: "status", class: "bad" }, text));
  by("methods").replaceChildren();
  by("count").textContent = "";
}

function list() {
  const wanted = by("search").value.trim().toLowerCase();
  const current = decodeURIComponent(location.hash.slice(1));
  const groups = new Map();
  let count = 0;
  for (const [path, item] of Object.entries(api.paths)) {
    const name = dotted(path);
    if (wanted && !`${name} ${item.post.summary}`.toLowerCase().includes(wanted)) continue;
    count += 1;
    const [group, leaf] = [name.slice(0, name.lastIndexOf(".")), name.slice(name.lastIndexOf(".") + 1)];
    const kind = item.post["x-compute"].kind;
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(
      make("a", { href: `#${encodeURIComponent(name)}`, "aria-current": name === current ? "page" : null, title: name },
        leaf, make("span", { class: `mark ${kind}` }, kind)),
    );
  }
  by("methods").replaceChildren(
    ...[...groups].map(([group, links]) => make("section", { "aria-label": group }, make("h4", {}, group), ...links)),
  );
  by("count").textContent = `${count} of ${Object.keys(api.paths).length} methods`;
}

function show() {
  if (!api) return;
  const name = decodeURIComponent(location.hash.slice(1));
  const path = `/${name.replaceAll(".", "/")}`;
  const item = api.paths[path];
  if (!item) {
    const text = name ? `There is no method ${name}.` : `${api.info.title} ${api.info.version}. Choose a method.`;
    by("detail").replaceChildren(make("p", { id: "state", role: "status" }, text));
    return;
  }
  const operation = item.post;
  const { kind, action, module } = operation["x-compute"];
  const { schema: taken, example } = operation.requestBody.content["application/json"];
  const input = resolve(taken);
  const answer = resolve(operation.responses["200"].content["application/json"].schema);
  by("detail").replaceChildren(
    make("h2", {}, name),
    make("p", {}, operation.summary, operation.deprecated ? make("strong", { class: "bad" }, ` ${operation["x-compute"].deprecated}`) : null),
    make("p", { class: "quiet" }, make("span", { class: `mark ${kind}` }, kind), ` of ${module}, needs `, make("code", {}, action),
      ` · POST ${base.replace(/\/$/, "")}${path}${item.get ? " or GET" : ""}`),
    make("h3", {}, "Input"), fields(input, true), ...within(input, true),
    make("h3", {}, "Answer"), fields(answer, false), ...within(answer, false),
    make("h3", {}, "Try it"), attempt(name, path, kind, example ?? sample(input)),
  );
}

function fields(schema, given) {
  const properties = Object.entries(schema.properties ?? {});
  if (!properties.length) return make("p", { class: "quiet" }, schema.description && !schema.properties ? schema.description : "Nothing.");
  const required = new Set(schema.required ?? []);
  const rows = properties.map(([name, each]) =>
    make("tr", {}, make("td", {}, name), make("td", {}, typeOf(each)), make("td", {}, !given ? "" : required.has(name) ? "required" : limits(each, true)),
      make("td", {}, limits(each, false))));
  const head = make("tr", {}, ...["Field", "Type", given ? "Given" : "", "Limits"].map((text) => make("th", { scope: "col" }, text)));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

// The types that the fields name, each once, with the types of their fields behind it.
function within(schema, given, told = new Set()) {
  return Object.values(schema.properties ?? {}).flatMap(named).flatMap((type) => {
    if (!type.properties || told.has(type)) return [];
    told.add(type);
    return [make("h4", {}, type.title), fields(type, given), ...within(type, given, told)];
  });
}

function named(schema) {
  if (schema.$ref) return [resolve(schema)];
  return [...(schema.anyOf ?? []), schema.items, schema.additionalProperties].filter((each) => each && typeof each === "object").flatMap(named);
}

function typeOf(schema) {
  if (schema.$ref) return resolve(schema).title ?? "object";
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  if (schema.format === "date-time") return "time, as RFC 3339";
  return schema.type ?? "anything";
}

const number = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

function limits(schema, byDefault) {
  if (byDefault) return "default" in schema ? `default ${JSON.stringify(schema.default)}` : "optional";
  const found = [schema, ...(schema.anyOf ?? [])].flatMap((each) => [
    // That no line break may follow goes for every pattern, and is no news to a reader.
    each.pattern && `pattern ${each.pattern.replace(/\(\?!\\n\)$/, "")}`,
    each.minimum != null && `at least ${each.minimum}`,
    each.maximum != null && `at most ${each.maximum}`,
    each.minLength != null && `at least ${number(each.minLength, "character")}`,
    each.maxLength != null && `at most ${number(each.maxLength, "character")}`,
    each.minItems != null && `at least ${number(each.minItems, "item")}`,
    each.maxItems != null && `at most ${number(each.maxItems, "item")}`,
  ]);
  return found.filter(Boolean).join(", ");
}

function sample(schema) {
  const each = resolve(schema);
  if (each.anyOf) return sample(each.anyOf[0]);
  if (each.enum) return each.enum[0];
  if (each.type === "object") return Object.fromEntries((each.required ?? []).map((name) => [name, sample(each.properties[name])]));
  if (each.type === "array") return [];
  if (each.type === "integer" || each.type === "number") return each.minimum ?? 1;
  return each.type === "boolean" ? false : each.type === "null" ? null : "";
}

function attempt(name, path, kind, given) {
  const body = make("textarea", { id: "body", spellcheck: "false", "aria-label": "Input as JSON" });
  body.value = JSON.stringify(given, null, 2);
  const dry = make("input", { type: "checkbox", id: "dry", checked: true });
  const result = make("div", { role: "status" });
  const command = make("pre", {});
  const url = () => `${base}${path.slice(1)}${kind === "mutation" && dry.checked ? "?dryRun=true" : ""}`;
  const write = () => {
    const data = body.value.replace(/\s*\n\s*/g, " ").replaceAll("'", "'\\''");
    const key = kind === "mutation" && !dry.checked ? ` -H "Idempotency-Key: $(uuidgen)"` : "";
    command.textContent = `curl -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json"${key} -d '${data}' '${new URL(url(), location.href)}'`;
  };
  const send = make("button", { class: "send", type: "submit" }, "Send");
  const form = make("form", {}, body,
    make("div", { class: "row" }, send,
      kind === "mutation" ? make("label", {}, dry, " only try: make every check, keep nothing") : null),
    result, make("h3", {}, "The same from a shell"), command);
  body.addEventListener("input", write);
  dry.addEventListener("change", write);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    send.disabled = true;
    try {
      result.replaceChildren(...(await call(url(), body.value, kind === "mutation" && !dry.checked)));
    } finally {
      send.disabled = false;
    }
  });
  write();
  return form;
}

async function call(url, body, keyed) {
  const began = performance.now();
  const more = { "Content-Type": "application/json", ...(keyed ? { "Idempotency-Key": crypto.randomUUID?.() ?? String(Math.random()) } : {}) };
  let response;
  try {
    response = await fetch(url, { method: "POST", body, headers: headers(more), credentials: token ? "omit" : "same-origin" });
  } catch (error) {
    return [make("p", { class: "bad" }, `No answer: ${error.message}`)];
  }
  const text = await response.text();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch { /* shown as it came */ }
  const tried = response.headers.get("Dry-Run") ? ", nothing was kept" : "";
  const line = `${response.status} ${response.statusText} in ${Math.round(performance.now() - began)} ms, request ${response.headers.get("X-Request-Id") ?? "-"}${tried}`;
  return [make("p", { class: response.ok ? "good" : "bad" }, line), make("pre", { tabindex: "0", "aria-label": "Answer" }, shown)];
}

by("access").addEventListener("submit", (event) => {
  event.preventDefault();
  token = by("token").value.trim();
  read();
});
by("search").addEventListener("input", () => api && list());
addEventListener("hashchange", () => {
  if (!api) return;
  list();
  show();
  by("detail").focus({ preventScroll: true });
  scrollTo(0, 0);
});
read();
