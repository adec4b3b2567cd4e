// Help: what the page does, and its keys.

import { element } from "../elements.js";
import { text } from "./strings.js";

const KEYS = /** @type {[string, string][]} */ ([
  ["Enter", text("help.send")],
  ["Shift+Enter", text("help.line")],
  ["Esc", text("help.stop")],
  ["↑", text("help.edit")],
  ["Ctrl+K", text("help.model")],
  ["Ctrl+Shift+L", text("help.code")],
  ["?", text("help.help")],
]);

/** Show the help until it is closed. */
export function showHelp() {
  const close = element("button", {}, text("action.close"));
  const keys = KEYS.flatMap(([name, meaning]) => [element("dt", {}, element("kbd", {}, name)), element("dd", {}, meaning)]);
  const dialog = element(
    "dialog", { "aria-labelledby": "help-title" },
    element("h2", { id: "help-title" }, text("help.title")),
    element("p", {}, text("help.text")),
    element("dl", {}, ...keys),
    close,
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
