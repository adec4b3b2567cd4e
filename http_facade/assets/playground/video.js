// Video: tasks that make videos. They go on without the page, and are listed again when it is opened with the same key.

import { element } from "../elements.js";
import { key } from "../gateway.js";
import { CallView } from "./call-view.js";
import { CallError, unary } from "./connect.js";
import { CREATE_VIDEO, LIST_VIDEOS, without } from "./contract.js";
import { failureView, isAbort } from "./failures.js";
import { Attachments } from "./media.js";
import { requiredValue, videoFields, videoRules } from "./media-forms.js";
import { text } from "./strings.js";
import { TaskView } from "./video-task.js";

/** @typedef {import("./contract.js").VideoTask} VideoTask */
/** @typedef {import("./media.js").Attachment} Attachment */
/** @typedef {import("./fields.js").Field} Field */

const LISTED = 20;
const FOLLOW_MILLISECONDS = 2000;
const PASSING = ["OFFLINE", "UNREACHABLE", "CUT", "UNAVAILABLE"];

export class VideoView extends CallView {
  /** @param {import("./shell.js").Shell} shell */
  constructor(shell) {
    super(shell, text("video.send"));
    this._prompt = element("textarea", { rows: "3", id: "prompt" });
    const picture = { accept: "image/*", multiple: false, changed: () => shell.changed() };
    this._first = new Attachments({ label: text("video.first"), ...picture });
    this._last = new Attachments({ label: text("video.last"), ...picture });
    this._needed = element("p", { class: "bad", role: "status" });
    this.inputs.append(this.field(text("image.prompt"), this._prompt), element("div", { class: "row" }, this._first.element, this._last.element), this._needed);
    this._listedFor = "";
    this._tasks = /** @type {TaskView[]} */ ([]);
    this._following = /** @type {AbortController | null} */ (null);
    this._problem = element("div");
    this._list = element("ul", { class: "tasks" });
    this._none = element("p", { class: "faint" }, text("video.tasks.none"));
    this.element.append(element("h2", {}, text("video.tasks")), this._none, this._problem, this._list);
  }

  get _rules() {
    return videoRules(this.shell.modelIds()[0] ?? "", this.shell.model());
  }

  modelChanged() {
    const rules = this._rules;
    const callback = /** @type {Field} */ ({ path: "callbackUrl", label: text("video.callback"), type: "text", placeholder: "https://", note: text("video.callback.note") });
    this.form.show([...videoFields(rules), ...(rules?.entry === "VIDEO_ENTRY_G" ? [] : [callback])]);
    this._first.element.hidden = rules?.maxImages === 0;
    this._last.element.hidden = rules ? !rules.lastFrame : false;
    if (key() && key() !== this._listedFor) this._readTasks();
    else this._follow();
  }

  async _readTasks() {
    this._listedFor = key();
    this.close();
    for (const task of this._tasks.splice(0)) task.close();
    this._list.replaceChildren();
    this._none.hidden = false;
    try {
      const { tasks = [] } = (await unary(LIST_VIDEOS, { pageSize: LISTED })).response;
      const made = [...this._tasks]; // while the list was read: each stays, above those of before
      const isMade = new Set(made.map(({ id }) => id));
      for (const task of /** @type {VideoTask[]} */ (tasks).reverse()) if (!isMade.has(task.taskId)) this._add(task, false);
      for (const view of made) this._list.prepend(view.element);
    } catch {
      // a key without videos: its calls state why
    }
  }

  /** @override */
  call() {
    const rules = this._rules;
    const prompt = this._prompt.value.trim();
    const media = this._media();
    if (!prompt && !media.length) return null;
    const parameters = without({ prompt, media });
    for (const name of /** @type {const} */ (["resolution", "durationSeconds"])) {
      const value = requiredValue(rules, name);
      if (value !== undefined) Object.assign(parameters, { [name]: value });
    }
    const message = without({ model: this.shell.modelIds()[0] ?? "", entry: rules?.entry, parameters });
    return { method: CREATE_VIDEO, message: this.form.addTo(message) };
  }

  _media() {
    const first = this._first.element.hidden ? undefined : this._first.files[0];
    const last = this._last.element.hidden ? undefined : this._last.files[0];
    /** @param {Attachment} file @param {string | undefined} role */
    const medium = ({ name, mimeType, data }, role) => without({ kind: "VIDEO_MEDIA_KIND_IMAGE", role, data, mimeType, fileName: name });
    // one picture has the role that the family gives it
    return [...(first ? [medium(first, last && "VIDEO_MEDIA_ROLE_FIRST_FRAME")] : []), ...(last ? [medium(last, "VIDEO_MEDIA_ROLE_LAST_FRAME")] : [])];
  }

  /** @override */
  async run() {
    const isMissing = this._rules?.minImages && !this._first.files.length;
    this._needed.textContent = isMissing ? text("video.image_needed") : "";
    if (!isMissing) await super.run();
  }

  /**
   * @override
   * @param {{task: VideoTask}} response
   * @param {import("./connect.js").Head} head
   */
  show({ task }, { requestId }) {
    this._add(task, true, requestId);
    this.shell.remember(this._prompt.value, { prompt: this._prompt.value, settings: this.form.values });
  }

  /**
   * The record of the call is written when its task ends: the task shows it.
   * @override
   * @returns {{}}
   */
  recordOf() {
    return {};
  }

  /**
   * @param {VideoTask} task
   * @param {boolean} isNew
   * @param {string} [requestId] id of the call that made it
   */
  _add(task, isNew, requestId = "") {
    const model = this.shell.listed(task.model ?? "");
    const view = new TaskView(task, { canRemix: !model || (model.operations ?? []).includes("MODEL_OPERATION_REMIX_VIDEO"), showsVideo: isNew, requestId, remixed: (made, id) => this._add(made, true, id) });
    this._tasks.push(view);
    this._list.prepend(view.element);
    this._none.hidden = true;
    this._follow();
  }

  /**
   * Read the tasks again until they have ended. One call reads all of them: a stream for each would use up the six
   * connections that a browser has to a host, and block all other pages of the gateway.
   */
  async _follow() {
    if (this._following || !this._tasks.some(({ isOpen }) => isOpen)) return;
    const { signal } = (this._following = new AbortController());
    this._problem.replaceChildren();
    while (!signal.aborted) {
      const open = this._tasks.filter(({ isOpen }) => isOpen);
      if (!open.length) break;
      try {
        await this._update(open, signal);
      } catch (error) {
        if (isAbort(error)) return;
        if (!(error instanceof CallError && PASSING.includes(error.reason))) {
          this._problem.replaceChildren(failureView(error, () => this._follow()));
          break;
        }
      }
      await new Promise((done) => setTimeout(done, FOLLOW_MILLISECONDS));
    }
    if (!signal.aborted) this._following = null;
  }

  /**
   * @param {TaskView[]} views
   * @param {AbortSignal} signal
   */
  async _update(views, signal) {
    const message = { taskIds: views.map(({ id }) => id), pageSize: views.length };
    const { tasks = [] } = (await unary(LIST_VIDEOS, message, signal)).response;
    for (const view of views) {
      const task = /** @type {VideoTask[]} */ (tasks).find(({ taskId }) => taskId === view.id);
      if (task) view.update(task);
      else view.remove();
    }
  }

  /** Stop following the tasks, which go on. */
  close() {
    this._following?.abort();
    this._following = null;
  }

  /** @param {{prompt: string, settings: import("./fields.js").Values}} saved */
  restore({ prompt, settings }) {
    this._prompt.value = prompt;
    this.form.restore(settings);
  }

  /** @param {Attachment} file */
  receive(file) {
    this._first.set([file]);
  }
}
