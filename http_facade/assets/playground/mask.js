// Mask on a picture: what is painted is transparent in it, and drawn again by the model.

import { element } from "../elements.js";
import { objectUrl } from "./media.js";
import { text } from "./strings.js";

/** @typedef {import("./media.js").Attachment} Attachment */

const BRUSH_SHARE = 12; // of the shorter side
const PAINTED = "rgb(164 22 26 / 0.6)";
const MOVES = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] });

export class MaskEditor {
  /** @param {() => void} changed */
  constructor(changed) {
    this._changed = changed;
    this._picture = new Image();
    this._file = /** @type {Attachment | null} */ (null);
    this._strokes = /** @type {[number, number, number][]} */ ([]); // x, y, radius
    this._brush = 0;
    this._cursor = { x: 0, y: 0 };
    this._canvas = element("canvas", { tabindex: "0", role: "application" });
    const clear = element("button", { type: "button", class: "quiet" }, text("image.mask.clear"));
    clear.addEventListener("click", () => { this._strokes = []; this._draw(); changed(); });
    this.element = element("details", { hidden: true }, element("summary", {}, text("image.mask")), element("p", { class: "faint" }, text("image.mask.note")), this._canvas, element("div", { class: "row" }, clear));
    this._canvas.addEventListener("pointerdown", (event) => { this._canvas.setPointerCapture(event.pointerId); this._point(event); });
    this._canvas.addEventListener("pointermove", (event) => { if (event.buttons) this._point(event); });
    this._canvas.addEventListener("keydown", (event) => this._key(event));
    this._canvas.addEventListener("focus", () => this._draw());
    this._canvas.addEventListener("blur", () => this._draw());
    this._picture.addEventListener("load", () => this._begin());
  }

  /**
   * Show a picture without a mask, or with its mask if it was shown before; nothing for null.
   * @param {Attachment | null} file
   */
  show(file) {
    this.element.hidden = file === null;
    if (!file || file === this._file) return;
    this._file = file;
    this._strokes = [];
    this._picture.src = objectUrl(file.data, file.mimeType);
  }

  /** Return the mask as a PNG in base64; "" if nothing is painted. */
  png() {
    if (!this._strokes.length || this.element.hidden) return "";
    const mask = element("canvas");
    [mask.width, mask.height] = [this._canvas.width, this._canvas.height];
    const context = /** @type {CanvasRenderingContext2D} */ (mask.getContext("2d"));
    context.fillStyle = "white";
    context.fillRect(0, 0, mask.width, mask.height);
    context.globalCompositeOperation = "destination-out";
    this._paint(context);
    return mask.toDataURL("image/png").split(",")[1] ?? "";
  }

  _begin() {
    const { naturalWidth: width, naturalHeight: height } = this._picture;
    [this._canvas.width, this._canvas.height] = [width, height];
    this._brush = Math.max(4, Math.round(Math.min(width, height) / BRUSH_SHARE));
    this._cursor = { x: width / 2, y: height / 2 };
    this._draw();
  }

  /** @param {PointerEvent} event */
  _point(event) {
    const box = this._canvas.getBoundingClientRect();
    this._cursor = { x: (event.clientX - box.left) * (this._canvas.width / box.width), y: (event.clientY - box.top) * (this._canvas.height / box.height) };
    this._stroke();
  }

  _stroke() {
    this._strokes.push([this._cursor.x, this._cursor.y, this._brush]);
    this._draw();
    this._changed();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const move = MOVES[event.key];
    if (move) {
      const { x, y } = this._cursor;
      this._cursor = { x: clamp(x + move[0] * this._brush, this._canvas.width), y: clamp(y + move[1] * this._brush, this._canvas.height) };
      this._draw();
    } else if (event.key === " ") this._stroke();
    else if (event.key === "+") this._resize(1.25);
    else if (event.key === "-") this._resize(0.8);
    else return;
    event.preventDefault();
  }

  /** @param {number} factor */
  _resize(factor) {
    this._brush = Math.max(2, this._brush * factor);
    this._draw();
  }

  _draw() {
    const context = /** @type {CanvasRenderingContext2D} */ (this._canvas.getContext("2d"));
    context.clearRect(0, 0, this._canvas.width, this._canvas.height);
    context.drawImage(this._picture, 0, 0);
    context.fillStyle = PAINTED;
    this._paint(context);
    const { x, y } = this._cursor;
    this._canvas.setAttribute("aria-label", text("image.mask.canvas", { x: Math.round(x), y: Math.round(y) }));
    if (document.activeElement !== this._canvas) return;
    context.lineWidth = 3;
    context.strokeStyle = "black";
    context.beginPath();
    context.arc(x, y, this._brush, 0, 2 * Math.PI);
    context.stroke();
    context.strokeStyle = "white";
    context.setLineDash([6, 6]);
    context.stroke();
    context.setLineDash([]);
  }

  /** @param {CanvasRenderingContext2D} context */
  _paint(context) {
    context.beginPath();
    for (const [x, y, radius] of this._strokes) {
      context.moveTo(x + radius, y);
      context.arc(x, y, radius, 0, 2 * Math.PI);
    }
    context.fill();
  }
}

/**
 * @param {number} value
 * @param {number} most
 */
const clamp = (value, most) => Math.max(0, Math.min(most, value));
