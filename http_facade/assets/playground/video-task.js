// One video task: its state and progress, then its video.

import { copyButton, element } from "../elements.js";
import { visible } from "../quoting.js";
import { bytesOf, CallError, stream, unary } from "./connect.js";
import { DELETE_VIDEO, DOWNLOAD_VIDEO, REMIX_VIDEO } from "./contract.js";
import { failureView, isAbort, requestIdView } from "./failures.js";
import { recordViews } from "./records.js";
import { text } from "./strings.js";

/** @typedef {import("./contract.js").VideoTask} VideoTask */
/** @typedef {"submitting" | "queued" | "running" | "succeeded" | "failed" | "cancelled"} StateName */

const BADGES = /** @type {Record<string, [string, string]>} */ ({
  submitting: ["info", "◐"], queued: ["info", "◐"], running: ["info", "◐"], succeeded: ["good", "●"], failed: ["bad", "■"], cancelled: ["faint", "–"],
});
const OPEN_STATES = ["submitting", "queued", "running"];

export class TaskView {
  /**
   * @param {VideoTask} task
   * @param {{canRemix: boolean, showsVideo: boolean, requestId: string, remixed: (task: VideoTask, requestId: string) => void}} options
   */
  constructor(task, { canRemix, showsVideo, requestId, remixed }) {
    this._task = task;
    this._canRemix = canRemix;
    this._showsVideo = showsVideo;
    this._remixed = remixed;
    this._requestId = requestId;
    this._controller = new AbortController();
    this._state = element("p", { role: "status" });
    this._actions = element("div", { class: "actions" });
    this._result = element("div");
    this._remix = element("div");
    this._isRemoved = false;
    this._shownActions = "";
    const id = element("code", {}, task.taskId);
    const title = element("p", {}, element("strong", {}, visible(task.parameters?.prompt ?? "")), " ", element("span", { class: "faint" }, visible(task.model ?? "")));
    const facts = element("p", { class: "faint" }, id, " ", copyButton(text("action.copy_id"), () => task.taskId, id), task.remixedFromTaskId ? ` ${text("video.remix_of", { id: task.remixedFromTaskId })}` : "");
    this.element = element("li", { "data-task": task.taskId }, title, facts, this._state, this._actions, this._remix, this._result);
    this._show(task);
  }

  get _name() {
    return /** @type {StateName} */ (this._task.state.replace("VIDEO_TASK_STATE_", "").toLowerCase());
  }

  get id() {
    return this._task.taskId;
  }

  get isOpen() {
    return OPEN_STATES.includes(this._name) && !this._isRemoved;
  }

  close() {
    this._controller.abort();
  }

  /**
   * Show the task as it is now, if it has changed.
   * @param {VideoTask} task
   */
  update(task) {
    if (task.state !== this._task.state || task.progressPercent !== this._task.progressPercent) this._show(task);
  }

  /** Say that the task does not exist any more. */
  remove() {
    this._isRemoved = true;
    this._actions.replaceChildren();
    this._result.replaceChildren(failureView(new CallError("", { reason: "OBJECT_NOT_FOUND" })));
  }

  /** @param {VideoTask} task */
  _show(task) {
    this._task = task;
    const [badge, shape] = BADGES[this._name] ?? ["faint", "–"];
    const progress = element("progress", { max: "100", value: String(task.progressPercent ?? 0), "aria-label": text("video.progress", { id: task.taskId }) });
    this._state.replaceChildren(element("span", { class: `badge ${badge}` }, `${shape} ${text(`video.state.${this._name}`)}`), " ", ...(this.isOpen ? [progress, ` ${task.progressPercent ?? 0} %`] : []));
    if (task.callbackError) this._state.append(" ", text("video.callback.failed", { error: visible(task.callbackError) }));
    if (this._name === "failed") this._result.replaceChildren(element("p", { class: "bad" }, text("video.failed", { message: visible(task.error?.message ?? "") })));
    const actions = this.isOpen ? "open" : this._name;
    if (actions !== this._shownActions) this._actions.replaceChildren(...this._buttons()); // the same ones keep the focus
    this._shownActions = actions;
    if (this._name === "succeeded" && this._showsVideo) this._load();
    if (!this.isOpen && this._requestId) this._showRecord();
  }

  _showRecord() {
    const { cost, story } = recordViews(this._requestId);
    this.element.append(element("div", { class: "figures" }, cost, requestIdView(this._requestId), story));
    this._requestId = "";
  }

  _buttons() {
    if (this.isOpen) return [this._button("action.cancel", () => this._cancel())];
    if (this._name !== "succeeded") return [];
    const remix = this._canRemix ? [this._button("action.remix", () => this._askForRemix())] : [];
    return [...(this._showsVideo ? [] : [this._button("action.show_video", () => this._load())]), ...remix];
  }

  /**
   * @param {"action.cancel" | "action.remix" | "action.show_video"} name
   * @param {() => void} act
   */
  _button(name, act) {
    const button = element("button", { type: "button", class: "quiet" }, text(name));
    button.addEventListener("click", act);
    return button;
  }

  async _cancel() {
    try {
      const { task } = (await unary(DELETE_VIDEO, { taskId: this._task.taskId })).response;
      this._show(task);
    } catch (error) {
      this._result.replaceChildren(failureView(error));
    }
  }

  async _load() {
    this._showsVideo = true;
    this._result.replaceChildren(element("p", { class: "faint" }, text("video.loading")));
    try {
      const chunks = /** @type {Uint8Array<ArrayBuffer>[]} */ ([]);
      let type = "video/mp4";
      for await (const { head, chunk } of stream(DOWNLOAD_VIDEO, { taskId: this._task.taskId }, this._controller.signal)) {
        if (head) type = head.mimeType || type;
        else chunks.push(/** @type {Uint8Array<ArrayBuffer>} */ (bytesOf(chunk)));
      }
      const address = URL.createObjectURL(new Blob(chunks, { type }));
      const player = element("video", { controls: true, src: address, "aria-label": text("video.label", { prompt: this._task.parameters?.prompt ?? "" }) });
      this._result.replaceChildren(player, element("a", { href: address, download: `${this._task.taskId}.mp4` }, text("action.download")));
    } catch (error) {
      if (!isAbort(error)) this._result.replaceChildren(failureView(error, () => this._load()));
    }
  }

  _askForRemix() {
    const known = this._remix.querySelector("input");
    if (known) {
      known.focus();
      return;
    }
    const prompt = element("input", { type: "text", autocomplete: "off" });
    const send = element("button", {}, text("video.remix.send"));
    const problem = element("div");
    const form = element("form", {}, element("label", {}, text("video.remix.prompt"), prompt), send, problem);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (send.disabled) return;
      send.disabled = true; // a second press would make, and charge, a second video
      problem.replaceChildren();
      try {
        const { response, head } = await unary(REMIX_VIDEO, { taskId: this._task.taskId, prompt: prompt.value });
        form.remove();
        this._remixed(response.task, head.requestId);
      } catch (error) {
        problem.replaceChildren(failureView(error));
      }
      send.disabled = false;
    });
    this._remix.append(form);
    prompt.focus();
  }
}
