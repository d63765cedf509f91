// Makes the calls that a file lists and prints what came of each. Arguments: base URL, token, file of cases.
import { readFileSync } from "node:fs";
import { ApiError, BadAnswer, Client, ConnectionLost } from "./build/client.js";

const [baseUrl, token, file] = process.argv.slice(2);
const { settings, cases } = JSON.parse(readFileSync(file, "utf8"));
const client = new Client({ baseUrl, token, ...settings });

/** The outcome of one call by its dotted name. */
export async function outcome({ method, input, options }) {
  const steps = method.split(".");
  const name = steps.pop();
  const group = steps.reduce((place, step) => place[step], client);
  try {
    return { answer: await group[name](input, options) };
  } catch (error) {
    if (error instanceof ApiError) return { code: error.code, told: error.message };
    if (error instanceof BadAnswer || error instanceof ConnectionLost) return { error: error.name, told: error.message };
    throw error;
  }
}

const outcomes = [];
for (const each of cases) outcomes.push(await outcome(each));
console.log(JSON.stringify(outcomes));
