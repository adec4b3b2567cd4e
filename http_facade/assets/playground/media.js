// Files of the caller, and pictures of models, as elements.

import { element } from "../elements.js";
import { base64Of } from "./response-parts.js";
import { bytesOf } from "./connect.js";
import { webLink } from "./links.js";
import { text } from "./strings.js";

/** @typedef {{name: string, mimeType: string, data: string}} Attachment content in base64 */
/** @typedef {import("./contract.js").Part} Part */

const STARTS = /** @type {Record<string, string>} */ ({ iVBOR: "image/png", "/9j/": "image/jpeg", UklGR: "image/webp", R0lGO: "image/gif" });
const KINDS = /** @type {Record<string, [string, string]>} */ ({
  image: ["MEDIA_KIND_IMAGE", "image"], audio: ["MEDIA_KIND_AUDIO", "audio"], video: ["MEDIA_KIND_VIDEO", "video"],
});

/**
 * Return the media type of content in base64, where it states one of a picture.
 * @param {string} data
 */
export function pictureType(data) {
  return STARTS[Object.keys(STARTS).find((start) => data.startsWith(start)) ?? ""] ?? "image/png";
}

/**
 * Return files as attachments.
 * @param {Iterable<File>} files
 * @returns {Promise<Attachment[]>}
 */
export function read(files) {
  return Promise.all([...files].map(async (file) => ({
    name: file.name, mimeType: file.type || "application/octet-stream", data: base64Of([new Uint8Array(await file.arrayBuffer())]),
  })));
}

/**
 * Return the kind of input that a file is (`image`, `audio`, `video` or `file`), in the words of a model's capabilities.
 * @param {Attachment} file
 */
export const modalityOf = ({ mimeType }) => KINDS[mimeType.split("/")[0] ?? ""]?.[1] ?? "file";

/**
 * Return the part of a message with a file.
 * @param {Attachment} file
 * @returns {Part}
 */
export function partOf({ name, mimeType, data }) {
  const kind = KINDS[mimeType.split("/")[0] ?? ""]?.[0] ?? "MEDIA_KIND_DOCUMENT";
  return { media: { kind, data, mimeType, filename: name } };
}

const urls = /** @type {Map<string, string>} */ (new Map());

/**
 * Return the content in base64 as a URL of this page, to be shown or saved: the same for the same content.
 * @param {string} data
 * @param {string} type
 */
export function objectUrl(data, type) {
  const known = urls.get(data);
  if (known) return known;
  const made = URL.createObjectURL(new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytesOf(data))], { type }));
  urls.set(data, made);
  return made;
}

/**
 * Return the element of a medium: a picture, a player, or a link that saves the file.
 * @param {NonNullable<Part["media"]>} media
 */
export function mediaView({ kind, data, uri, mimeType, filename, transcript }) {
  if (!data) return webLink(uri ?? "", [uri ? text("chat.foreign_image", { name: uri.slice(0, 80) }) : filename ?? ""]);
  const name = filename || text("chat.image_of");
  if (kind === "MEDIA_KIND_IMAGE") return element("img", { src: objectUrl(data, mimeType || pictureType(data)), alt: name });
  if (kind === "MEDIA_KIND_AUDIO") {
    return element("figure", {}, element("audio", { controls: true, src: objectUrl(data, mimeType ?? "") }), element("figcaption", {}, transcript ?? ""));
  }
  if (kind === "MEDIA_KIND_VIDEO") return element("video", { controls: true, src: objectUrl(data, mimeType ?? ""), "aria-label": name });
  return element("a", { href: objectUrl(data, mimeType ?? ""), download: name }, name);
}

/** List of files that are sent with the next call, with a field to add some. */
export class Attachments {
  /**
   * @param {{label: string, accept?: string, multiple?: boolean, changed: () => void, refuses?: (file: Attachment) => string}} options
   */
  constructor({ label, accept = "", multiple = true, changed, refuses = () => "" }) {
    this.files = /** @type {Attachment[]} */ ([]);
    this._changed = changed;
    this._refuses = refuses;
    this._multiple = multiple;
    this.input = element("input", { type: "file", multiple, accept: accept || undefined, class: "covered" });
    this._list = element("ul", { class: "files" });
    this._refused = element("p", { class: "bad", role: "alert" });
    const field = element("label", { class: "button quiet" }, label, this.input);
    this.element = element("div", { class: "attachments" }, field, this._list, this._refused);
    this.input.addEventListener("change", async () => {
      await this.add(this.input.files ?? []);
      this.input.value = "";
    });
  }

  /** @param {Iterable<File>} files */
  async add(files) {
    this.set([...(this._multiple ? this.files : []), ...await read(files)]);
  }

  /** @param {Attachment[]} files */
  set(files) {
    const refused = files.map((file) => this._refuses(file));
    this.files = files.filter((_, place) => !refused[place]);
    this._refused.textContent = refused.filter(Boolean).join(" ");
    this._list.replaceChildren(...this.files.map((file) => this._item(file)));
    this._changed();
  }

  /** @param {Attachment} file */
  _item(file) {
    const remove = element("button", { type: "button", class: "quiet", "aria-label": text("action.remove", { name: file.name }) }, "×");
    remove.addEventListener("click", () => this.set(this.files.filter((other) => other !== file)));
    const picture = file.mimeType.startsWith("image/") ? element("img", { src: objectUrl(file.data, file.mimeType), alt: "" }) : undefined;
    return element("li", {}, picture, file.name, " ", remove);
  }
}
