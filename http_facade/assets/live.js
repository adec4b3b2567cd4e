// Live parts of a page: they are read again every few seconds, and replaced where they have changed. Nothing changes below
// a hand: not while the page is hidden, a part is pointed at or has the focus, or a text is selected; new rows of a list
// wait behind a button.

const PERIOD_MILLISECONDS = 5000;
const IDLE_MILLISECONDS = 15 * 60_000; // a page that nobody uses does not keep its session
const PARTS = "main [data-live]";
const toggle = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-live-switch]"));
/** Part -> its element as it was received, without that which scripts have added. */
const received = /** @type {Map<string, Element>} */ (new Map());
let latest = /** @type {Document | null} */ (null);
let tag = `"${document.documentElement.dataset["tag"]}"`;
let used = performance.now();

/** @param {string} name */
const partOf = (name) => /** @type {HTMLElement | null} */ (document.querySelector(`main [data-live="${name}"]`));

/** Return the live parts of the page as it is now; null if they have not changed, or cannot be read. @returns {Promise<Document | null>} */
function read() {
  return new Promise((done) => {
    const request = new XMLHttpRequest(); // it reads a document without a text that becomes HTML, and runs none of its scripts
    request.open("GET", location.pathname + location.search);
    request.responseType = "document";
    request.setRequestHeader("if-none-match", tag);
    request.setRequestHeader("live-parts", "1"); // these parts alone, as they were drawn for all who have the page open
    request.timeout = PERIOD_MILLISECONDS; // so that a late response cannot replace a newer one
    request.onerror = request.ontimeout = () => done(null);
    request.onload = () => {
      if (new URL(request.responseURL).pathname !== location.pathname) switchLive(false); // the session has ended
      const isRead = request.status === 200 && isLive();
      if (isRead) tag = request.getResponseHeader("etag") ?? "";
      done(isRead ? request.responseXML : null);
    };
    request.send();
  });
}

const isLive = () => toggle?.ariaPressed === "true";

/** @param {boolean} on */
function switchLive(on) {
  if (toggle) toggle.ariaPressed = String(on);
}

/** @param {HTMLElement} part */
function isBelowHand(part) {
  const opened = [...part.querySelectorAll("details")].some((each) => each.open);
  return opened || part.matches(":hover") || part.contains(document.activeElement);
}

/** @param {Element} part */
const rowsOf = (part) => [...part.querySelectorAll("tbody tr")].map((row) => row.querySelector("a")?.getAttribute("href") ?? "");

/**
 * Show a part as it is now.
 * @param {HTMLElement} part
 * @param {Element} fresh
 */
function replace(part, fresh) {
  if (fresh.querySelector(".charts") && !("uPlot" in globalThis)) location.reload(); // the page began without charts
  const shown = /** @type {HTMLElement} */ (document.importNode(fresh, true));
  part.replaceWith(shown);
  received.set(part.dataset["live"] ?? "", fresh);
  shown.dispatchEvent(new CustomEvent("replaced", { bubbles: true }));
}

/**
 * Offer the new rows of a list by a button; replace the list if it has none.
 * @param {HTMLElement} part
 * @param {Element} fresh
 */
function offerRows(part, fresh) {
  const shown = new Set(rowsOf(part));
  const count = rowsOf(fresh).filter((row) => !shown.has(row)).length;
  const button = /** @type {HTMLButtonElement | null} */ (document.querySelector("[data-newer]"));
  if (!button || !count) {
    if (!isBelowHand(part)) replace(part, fresh);
    return;
  }
  button.textContent = (button.dataset["newer"] ?? "").replace("{count}", String(count));
  button.hidden = false;
  button.onclick = () => {
    button.hidden = true;
    replace(part, fresh);
  };
}

/** Read the page, and show its parts as they are now, as far as that disturbs nobody. */
export async function refresh() {
  const isIdle = performance.now() - used > IDLE_MILLISECONDS;
  if (!isLive() || isIdle || document.hidden || !document.getSelection()?.isCollapsed) return;
  latest = (await read()) ?? latest;
  for (const fresh of latest?.querySelectorAll(PARTS) ?? []) {
    const name = /** @type {HTMLElement} */ (fresh).dataset["live"] ?? "";
    const part = partOf(name);
    if (!part || received.get(name)?.isEqualNode(fresh)) continue;
    if (name === "rows") offerRows(part, fresh);
    else if (!isBelowHand(part)) replace(part, fresh);
  }
}

for (const kind of ["pointermove", "pointerdown", "keydown"]) {
  addEventListener(kind, () => { used = performance.now(); }, { passive: true });
}
if (toggle) {
  toggle.hidden = false;
  toggle.addEventListener("click", () => switchLive(!isLive()));
}
setInterval(refresh, PERIOD_MILLISECONDS);
