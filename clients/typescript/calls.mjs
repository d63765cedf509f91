// Calls every method that the cases name, and prints what each answered. Arguments: base URL, token, file of cases.
import { readFileSync } from "node:fs";
import { ApiError, Client } from "./build/client.js";

const [baseUrl, token, file] = process.argv.slice(2);
const client = new Client({ baseUrl, token });
const outcomes = [];
for (const { method, mutation, input } of JSON.parse(readFileSync(file, "utf8"))) {
  const steps = method.split(".");
  const name = steps.pop();
  const group = steps.reduce((place, step) => place[step], client);
  try {
    outcomes.push({ answer: await group[name](input, { dryRun: mutation }) });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    outcomes.push({ code: error.code });
  }
}
const walked = [];
for await (const item of client.work.listAll({ limit: 3 })) walked.push(item.key);
const first = await client.plugins.acme.widgets.poke({ tenantId: "t1", widgetId: "ts" }, { idempotencyKey: "k" });
const again = await client.plugins.acme.widgets.poke({ tenantId: "t1", widgetId: "ts" }, { idempotencyKey: "k" });
console.log(JSON.stringify({ outcomes, walked, poked: [first.poked, again.poked] }));
