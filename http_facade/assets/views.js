// Saved views: addresses of a page with names, which the storage of the browser keeps.

const STORED = "umg-views";
const views = /** @type {HTMLElement | null} */ (document.querySelector("[data-views]"));
const list = views?.querySelector("ul");
const form = views?.querySelector("form");

/** Name -> path and query. @returns {Record<string, string>} */
function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORED) ?? "{}");
  } catch {
    return {};
  }
}

/** @param {Record<string, string>} kept */
function store(kept) {
  localStorage.setItem(STORED, JSON.stringify(kept));
  show();
}

/**
 * @param {string} name
 * @param {string} address
 */
function rowOf(name, address) {
  const row = document.createElement("li");
  const link = document.createElement("a");
  const button = document.createElement("button");
  link.textContent = name;
  link.href = address;
  button.type = "button";
  button.className = "copy quiet";
  button.textContent = views?.dataset["remove"] ?? "";
  button.addEventListener("click", () => store(Object.fromEntries(Object.entries(stored()).filter(([each]) => each !== name))));
  row.append(link, " ", button);
  return row;
}

function show() {
  const rows = Object.entries(stored()).filter(([, address]) => address.startsWith("/console"));
  list?.replaceChildren(...rows.map(([name, address]) => rowOf(name, address)));
}

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  const name = String(new FormData(form).get("view") ?? "").trim();
  if (name) store({ ...stored(), [name]: location.pathname + location.search });
  form.reset();
});
show();
if (views) views.hidden = false;

export {}; // a module, so that its names are its own
