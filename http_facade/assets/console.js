// Additions to the console's pages, which work without them: keys of one letter, buttons that copy, times in the zone of
// the browser, and labels of cells that a narrow window shows as blocks.

const LIVE_MILLISECONDS = 1000;
const COPIED_MILLISECONDS = 2000;
const JUMP_MILLISECONDS = 1500;
const WRITTEN = "input:not([type=checkbox], [type=radio]), textarea, select";
const page = document.documentElement.dataset;
const localTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

/**
 * Return the elements of a part of the page that match a selector.
 * @param {ParentNode} part
 * @param {string} selector
 */
const all = (part, selector) => /** @type {HTMLElement[]} */ ([...part.querySelectorAll(selector)]);

/** @param {string} text */
function announce(text) {
  const place = document.getElementById("announced");
  if (place) place.textContent = text;
}

/**
 * Put a button that copies its text beside an id or a command.
 * @param {HTMLElement} code
 */
function offerCopy(code) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy quiet";
  button.textContent = page["copy"] ?? "";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(code.textContent ?? "");
    button.textContent = page["copied"] ?? "";
    announce(button.textContent);
    setTimeout(() => { button.textContent = page["copy"] ?? ""; }, COPIED_MILLISECONDS);
  });
  (code.closest("a") ?? code).after(" ", button);
}

/**
 * Add to a part of the page what its HTML does not have.
 * @param {ParentNode} part
 */
function complete(part) {
  for (const code of all(part, "code[data-copy]")) offerCopy(code);
  for (const button of all(part, "button[data-opens]")) button.hidden = false;
  for (const time of /** @type {HTMLTimeElement[]} */ (all(part, "time[datetime]"))) {
    const local = localTime.format(new Date(time.dateTime));
    time.title = `${time.dateTime}\n${local}`;
    if (page["moments"] === "local") time.textContent = local;
  }
  for (const table of /** @type {HTMLTableElement[]} */ (all(part, ".scroll:not(.wide) > table"))) {
    const labels = all(table, "thead th").map((head) => head.textContent ?? "");
    for (const row of all(table, "tbody tr")) {
      all(row, ":scope > td").forEach((cell, place) => { cell.dataset["label"] = labels[place] ?? ""; });
    }
  }
}

/** Links that open the rows of the page's lists. */
const rowLinks = () =>
  all(document, "main tbody tr").flatMap((row) => {
    const link = /** @type {HTMLElement | null} */ (row.querySelector("a"));
    return link?.checkVisibility() ? [link] : [];
  });

/** @param {number} step */
function moveRow(step) {
  const links = rowLinks();
  const place = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
  const next = links[place < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, place + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function showKeys() {
  const dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("keys-of-pages"));
  if (dialog && !dialog.open) dialog.showModal();
}

/** Key -> what it does. */
const KEYS = /** @type {Record<string, (() => void) | undefined>} */ ({
  "/": () => document.getElementById("search")?.focus(),
  "?": showKeys,
  j: () => moveRow(1),
  k: () => moveRow(-1),
  g: () => { jumping = performance.now(); },
});
let jumping = -Infinity;

/** @param {KeyboardEvent} event */
function press(event) {
  const target = /** @type {Element} */ (event.target);
  if (page["letters"] === "off" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest?.(WRITTEN) || document.querySelector("dialog[open]")) return;
  const jumps = performance.now() - jumping < JUMP_MILLISECONDS;
  jumping = -Infinity;
  const link = jumps ? all(document, "nav.side a[data-letter]").find((each) => each.dataset["letter"] === event.key) : undefined;
  const act = link ? () => link.click() : KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

complete(document);
document.addEventListener("keydown", press);
document.addEventListener("replaced", (event) => complete(/** @type {Element} */ (event.target)));
document.addEventListener("click", (event) => {
  if (/** @type {Element} */ (event.target).closest("[data-opens]")) showKeys();
});
if (document.querySelector("[data-live-switch]")) setTimeout(() => import("./live.js"), LIVE_MILLISECONDS);
if (document.querySelector("[data-views]")) import("./views.js");
