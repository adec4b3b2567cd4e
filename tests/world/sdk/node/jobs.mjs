// Runs the jobs of each line of standard input against one SDK and prints what it showed, by the job's id, in one line.
// The scripts beside this file give a driver: `ask(question)` and `stream(question)` -> shown, `abort(question)` -> leaves
// in the middle of a stream.
//
// in:  {root, key, model, tools: {name: schema}, jobs: [{id, streamed, aborted, question,
//       gave: {tool: result}, connection: {what differs of the above}}]}
// out: {id: {shown, second?} | {error: {class, status, message, failed}}}
import { createInterface } from "node:readline";
import { z } from "zod";

// The schema of the scenario `structured`, in the words of the parse helpers.
export const City = z.object({
  city: z.string(),
  people: z.int(),
  rivers: z.array(z.string()),
  place: z.object({ north: z.number(), east: z.number() }),
});

export const empty = { text: "", reasoning: "", calls: [], citations: [], refusal: "", finish: "", usage: [0, 0, 0, 0], parsed: null };

export function main(makeDriver) {
  return answered((request, job) => run(makeDriver({ ...request, ...job.connection }), job));
}

// Prints what `run(request, job)` gives for each job.
export async function answered(run) {
  for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const request = JSON.parse(line);
    const results = {};
    for (const job of request.jobs) {
      try {
        results[job.id] = await run(request, job);
      } catch (error) {
        results[job.id] = { error: described(error) };
      }
    }
    process.stdout.write(`${JSON.stringify(results)}\n`);
  }
}

async function run(driver, { question, streamed, aborted, gave }) {
  if (aborted) return { shown: await driver.abort(question) };
  const ask = (wanted) => (streamed ? driver.stream(wanted) : driver.ask(wanted));
  const { turn, ...shown } = await ask(question);
  if (!gave) return { shown };
  const { turn: _, ...second } = await ask({ ...question, choice: "auto", before: turn, gave });
  return { shown, second };
}

function described(error) {
  const status = error.status ?? error.statusCode ?? null;
  const cause = error.lastError ?? error;
  const { message, failed } = cause;
  return { class: cause.constructor.name, status: cause.status ?? cause.statusCode ?? status, message: String(message), failed };
}

// The text of the first piece of a stream that has one; then the stream is left.
export async function leave(stream, textOf, abort) {
  let seen = "";
  try {
    for await (const piece of stream) {
      seen += textOf(piece) ?? "";
      if (seen) abort();
    }
  } catch (error) {
    if (!seen) throw error;
    return { seen, left: error.constructor.name };
  }
  return { seen, left: "" };
}
