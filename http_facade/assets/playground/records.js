// What the gateway recorded about a call: its cost, channel and attempts.

import { element } from "../elements.js";
import { visible } from "../quoting.js";
import { unary } from "./connect.js";
import { GET_RECORD } from "./contract.js";
import { credits, grouped } from "./numbers.js";
import { text } from "./strings.js";

/** @typedef {import("./contract.js").RequestRecord} RequestRecord */

const WRITTEN_AFTER = [3000, 4000, 8000]; // milliseconds: the gateway writes records two seconds after a call

/**
 * Return the record of a call, when it is written; null if the key may not read it or there is none.
 * @param {string} requestId
 * @returns {Promise<RequestRecord | null>}
 */
export async function recordOf(requestId) {
  for (const milliseconds of WRITTEN_AFTER) {
    await new Promise((done) => setTimeout(done, milliseconds));
    try {
      return (await unary(GET_RECORD, { requestId })).response.record;
    } catch {
      // not written yet
    }
  }
  return null;
}

/**
 * Return the view of a call's cost, which follows when its record is written, and of its story.
 * @param {string} requestId
 */
export function recordViews(requestId) {
  const cost = element("span", { class: "cost" }, text("figure.cost.later"));
  const story = element("details", { class: "story" }, element("summary", {}, text("story")), element("p", { class: "faint" }, text("story.later")));
  recordOf(requestId).then((record) => {
    if (!record) {
      cost.textContent = text("figure.cost.none");
      return;
    }
    cost.textContent = text("figure.cost", { credits: credits(record.microCredits) });
    if (record.channel) cost.after(element("span", {}, text("figure.channel", { channel: visible(record.channel) })));
    cost.title = `${record.microCredits ?? 0} ${text("story.cost")}`;
    story.lastChild?.replaceWith(storyView(record));
  });
  return { cost, story };
}

/** @param {RequestRecord} record */
function storyView(record) {
  const attempts = (record.attempts ?? []).map(({ channel, upstreamModel, duration, upstreamStatusCode, reason }, place) => [
    text("story.attempt", { number: place + 1 }),
    [channel, upstreamModel, upstreamStatusCode, reason?.replace("ERROR_REASON_", ""), duration].filter(Boolean).join(", "),
  ]);
  const rows = [
    [text("story.channel"), record.channel],
    [text("story.model"), record.model],
    [text("story.status"), record.status],
    [text("story.duration"), record.duration],
    [text("story.first"), record.firstByteDuration],
    [text("story.cost"), grouped(Number(record.microCredits ?? 0))],
    ...attempts,
  ].filter(([, value]) => value);
  const terms = rows.flatMap(([term, value]) => [element("dt", {}, term), element("dd", {}, value)]);
  return element("dl", {}, ...terms, ...(record.cached ? [element("dd", {}, text("story.cached"))] : []));
}
