// Image: pictures from a text.

import { element } from "../elements.js";
import { CallView } from "./call-view.js";
import { GENERATE_IMAGE, without } from "./contract.js";
import { webLink } from "./links.js";
import { objectUrl, pictureType } from "./media.js";
import { imageFields, imageRules } from "./media-forms.js";
import { text } from "./strings.js";

/** @typedef {{data?: string, url?: string, mimeType?: string, width?: number, height?: number, revisedPrompt?: string}} Picture */
/** @typedef {import("./media.js").Attachment} Attachment */

const EXTENSIONS = /** @type {Record<string, string>} */ ({ "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif" });

export class ImageView extends CallView {
  /**
   * @param {import("./shell.js").Shell} shell
   * @param {string} [button]
   */
  constructor(shell, button = text("image.send")) {
    super(shell, button);
    this.prompt = element("textarea", { rows: "3", id: "prompt" });
    this.inputs.append(this.field(text("image.prompt"), this.prompt));
  }

  get rules() {
    return imageRules(this.shell.modelIds()[0] ?? "", this.shell.model());
  }

  modelChanged() {
    this.form.show(imageFields(this.rules));
  }

  /**
   * @override
   * @returns {import("./contract.js").Call | null}
   */
  call() {
    const prompt = this.prompt.value.trim();
    if (!prompt) return null;
    // the content itself: the page shows nothing of other hosts
    const message = without({ model: this.shell.modelIds()[0] ?? "", prompt, responseFormat: "IMAGE_RESPONSE_FORMAT_B64_JSON" });
    return { method: GENERATE_IMAGE, message: this.form.addTo(message) };
  }

  /**
   * @override
   * @param {{result?: {images?: Picture[]}}} response
   */
  show({ result = {} }) {
    const images = result.images ?? [];
    this.result.append(element("div", { class: "pictures" }, ...images.map((picture, place) => this.picture(picture, place))));
    this.shell.remember(this.prompt.value, { prompt: this.prompt.value, settings: this.form.values, images });
  }

  /**
   * Return the view of a picture, with what can be done with it.
   * @param {Picture} picture
   * @param {number} place
   */
  picture({ data, url, mimeType, width, height, revisedPrompt }, place) {
    if (!data) return element("p", {}, webLink(url ?? "", [text("chat.foreign_image", { name: url ?? "" })]));
    const type = mimeType || pictureType(data);
    const file = { name: `image-${place + 1}.${EXTENSIONS[type] ?? "png"}`, mimeType: type, data };
    const address = objectUrl(data, type);
    const shown = element("img", { src: address, alt: text("image.alt", { prompt: this.prompt.value }) });
    const size = element("span", { class: "faint" }, width && height ? text("image.size", { width, height }) : "");
    shown.addEventListener("load", () => { size.textContent = text("image.size", { width: shown.naturalWidth, height: shown.naturalHeight }); });
    const download = element("a", { href: address, download: file.name }, text("action.download"));
    const actions = element("div", { class: "actions" }, size, download, this._handOver("edit", text("action.edit_image"), file), this._handOver("video", text("action.make_video"), file));
    return element("figure", {}, shown, element("figcaption", {}, revisedPrompt, actions));
  }

  /**
   * @param {"edit" | "video"} kind
   * @param {string} label
   * @param {Attachment} file
   */
  _handOver(kind, label, file) {
    const button = element("button", { type: "button", class: "quiet" }, label);
    button.addEventListener("click", () => this.shell.open(kind, (view) => view.receive?.(file)));
    return button;
  }

  /** @param {{prompt: string, settings: import("./fields.js").Values, images?: Picture[]}} saved */
  restore({ prompt, settings, images = [] }) {
    this.prompt.value = prompt;
    this.form.restore(settings);
    this.result.replaceChildren(element("div", { class: "pictures" }, ...images.map((picture, place) => this.picture(picture, place))));
  }
}
