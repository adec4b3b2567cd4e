// Edit image: pictures from pictures and a text, with a mask where the model has one.

import { element } from "../elements.js";
import { ImageView } from "./image.js";
import { MaskEditor } from "./mask.js";
import { Attachments, objectUrl } from "./media.js";
import { imageFields } from "./media-forms.js";
import { text } from "./strings.js";

const MANY_PICTURES = 16; // for a model whose limit is not known

export class EditImageView extends ImageView {
  /** @param {import("./shell.js").Shell} shell */
  constructor(shell) {
    super(shell, text("image.edit.send"));
    this._mask = new MaskEditor(() => shell.changed());
    this._limit = element("p", { class: "bad", role: "status" });
    this._pictures = new Attachments({ label: text("image.inputs"), accept: "image/*", changed: () => this._picturesChanged() });
    this.inputs.prepend(this._pictures.element, this._limit, this._mask.element);
  }

  get _most() {
    return this.rules?.maxImages ?? MANY_PICTURES;
  }

  _picturesChanged() {
    this._showMask();
    this._limit.textContent = this._pictures.files.length > this._most ? text("image.inputs.many", { count: this._most }) : "";
    this.shell.changed();
  }

  _showMask() {
    const hasMask = !this.rules || this.rules.fields.includes("mask");
    this._mask.show(hasMask ? this._pictures.files[0] ?? null : null);
  }

  /** @override */
  modelChanged() {
    this.form.show(imageFields(this.rules));
    this._showMask();
  }

  /**
   * @override
   * @returns {import("./contract.js").Call | null}
   */
  call() {
    const call = super.call();
    const files = this._pictures.files.slice(0, this._most);
    if (!call || !files.length) return null;
    const inputs = files.map(({ name, mimeType, data }) => ({ data, mimeType, fileName: name }));
    const mask = this._mask.png();
    const masked = mask ? { operation: "IMAGE_OPERATION_EDIT", mask: { data: mask, mimeType: "image/png", fileName: "mask.png" } } : {};
    return { method: call.method, message: { ...call.message, inputs, ...masked } };
  }

  /** @override */
  lack() {
    return this._pictures.files.length ? super.lack() : text("image.inputs.needed");
  }

  /**
   * @override
   * @param {{result?: {images?: import("./image.js").Picture[]}}} response
   */
  show(response) {
    const before = this._pictures.files.slice(0, this._most).map(({ name, mimeType, data }, place) => element("img", { src: objectUrl(data, mimeType), alt: text("image.input_of", { number: place + 1, name }) }));
    this.result.append(element("h2", {}, text("image.before")), element("div", { class: "pictures" }, ...before), element("h2", {}, text("image.after")));
    super.show(response);
  }

  /** @param {import("./media.js").Attachment} file */
  receive(file) {
    this._pictures.set([file]);
  }
}
