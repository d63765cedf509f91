// Walks over every page of the queue and prints the keys. Arguments: base URL, token.
import { Client } from "./build/client.js";

const [baseUrl, token] = process.argv.slice(2);
const client = new Client({ baseUrl, token });
const keys = [];
for await (const queued of client.work.listAll({ limit: 3 })) keys.push(queued.key);
console.log(JSON.stringify(keys));
