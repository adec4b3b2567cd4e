// One video task: its state and progress while it runs, then its video.

import { copyButton, element } from "../elements.js";
import { visible } from "../quoting.js";
import { bytesOf, CallError, stream, unary } from "./connect.js";
import { DELETE_VIDEO, DOWNLOAD_VIDEO, REMIX_VIDEO, WATCH_VIDEO } from "./contract.js";
import { failureView, isAbort, requestIdView } from "./failures.js";
import { recordViews } from "./records.js";
import { text } from "./strings.js";

/** @typedef {import("./contract.js").VideoTask} VideoTask */
/** @typedef {"submitting" | "queued" | "running" | "succeeded" | "failed" | "cancelled"} StateName */

const BADGES = /** @type {Record<string, [string, string]>} */ ({
  submitting: ["info", "◐"], queued: ["info", "◐"], running: ["info", "◐"], succeeded: ["good", "●"], failed: ["bad", "■"], cancelled: ["faint", "–"],
});
const OPEN_STATES = ["submitting", "queued", "running"];
const RECONNECT_MILLISECONDS = 2000;

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
    const id = element("code", {}, task.taskId);
    const title = element("p", {}, element("strong", {}, visible(task.parameters?.prompt ?? "")), " ", element("span", { class: "faint" }, visible(task.model ?? "")));
    const facts = element("p", { class: "faint" }, id, " ", copyButton(text("action.copy_id"), () => task.taskId, id), task.remixedFromTaskId ? ` ${text("video.remix_of", { id: task.remixedFromTaskId })}` : "");
    this.element = element("li", { "data-task": task.taskId }, title, facts, this._state, this._actions, this._result);
    this._show(task);
    if (this._isOpen) this._watch();
  }

  get _name() {
    return /** @type {StateName} */ (this._task.state.replace("VIDEO_TASK_STATE_", "").toLowerCase());
  }

  get _isOpen() {
    return OPEN_STATES.includes(this._name);
  }

  close() {
    this._controller.abort();
  }

  /** Show each change of the task until it ends; a broken connection is opened again. */
  async _watch() {
    while (this._isOpen && !this._controller.signal.aborted) {
      try {
        for await (const { task } of stream(WATCH_VIDEO, { taskId: this._task.taskId }, this._controller.signal)) this._show(task);
      } catch (error) {
        if (isAbort(error)) return;
        if (error instanceof CallError && !["OFFLINE", "UNREACHABLE", "CUT", "UNAVAILABLE"].includes(error.reason)) {
          this._result.replaceChildren(failureView(error));
          return;
        }
        await new Promise((done) => setTimeout(done, RECONNECT_MILLISECONDS));
      }
    }
  }

  /** @param {VideoTask} task */
  _show(task) {
    this._task = task;
    const [badge, shape] = BADGES[this._name] ?? ["faint", "–"];
    const progress = element("progress", { max: "100", value: String(task.progressPercent ?? 0), "aria-label": text("video.progress", { id: task.taskId }) });
    this._state.replaceChildren(element("span", { class: `badge ${badge}` }, `${shape} ${text(`video.state.${this._name}`)}`), " ", ...(this._isOpen ? [progress, ` ${task.progressPercent ?? 0} %`] : []));
    if (task.callbackError) this._state.append(" ", text("video.callback.failed", { error: visible(task.callbackError) }));
    if (this._name === "failed") this._result.replaceChildren(element("p", { class: "bad" }, text("video.failed", { message: visible(task.error?.message ?? "") })));
    this._actions.replaceChildren(...this._buttons());
    if (this._name === "succeeded" && this._showsVideo) this._load();
    if (!this._isOpen && this._requestId) this._showRecord();
  }

  _showRecord() {
    const { cost, story } = recordViews(this._requestId);
    this.element.append(element("div", { class: "figures" }, cost, requestIdView(this._requestId), story));
    this._requestId = "";
  }

  _buttons() {
    if (this._isOpen) return [this._button("action.cancel", () => this._cancel())];
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
    const prompt = element("input", { type: "text", autocomplete: "off" });
    const form = element("form", {}, element("label", {}, text("video.remix.prompt"), prompt), element("button", {}, text("video.remix.send")));
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const { response, head } = await unary(REMIX_VIDEO, { taskId: this._task.taskId, prompt: prompt.value });
        form.remove();
        this._remixed(response.task, head.requestId);
      } catch (error) {
        form.append(failureView(error));
      }
    });
    this._result.append(form);
    prompt.focus();
  }
}
