// Assembly of a streamed response: events of the contract become the parts of the model's message, as it is sent back in
// the next turn.

import { bytesOf } from "./connect.js";

/** @typedef {import("./contract.js").GenerateEvent} GenerateEvent */
/** @typedef {import("./contract.js").Part} Part */
/** @typedef {import("./contract.js").Usage} Usage */

export class ResponseParts {
  constructor() {
    this.parts = /** @type {Part[]} */ ([]);
    this.usage = /** @type {Usage | undefined} */ (undefined);
    this.finishReason = "";
    this.finishMessage = "";
    this.blockReason = "";
    this._media = /** @type {Map<number, Uint8Array[]>} */ (new Map());
  }

  /**
   * Apply an event. Return the index of the part that it changed; -1 for none.
   * @param {GenerateEvent} event
   */
  apply(event) {
    const index = event.partIndex ?? 0;
    if (event.usage) this.usage = event.usage;
    if (event.finished) {
      this.finishReason = event.finished.finishReason ?? "";
      this.finishMessage = event.finished.finishMessage ?? "";
      this.blockReason = event.finished.blockReason ?? "";
    }
    const whole = event.partStarted ?? event.partUpdated;
    if (whole) this.parts[index] = structuredClone(whole);
    const part = this.parts[index];
    if (!part) return -1;
    return whole || this._append(part, event, index) ? index : -1;
  }

  /**
   * Append the content of an event to a part. Return whether there was any.
   * @param {Part} part
   * @param {GenerateEvent} event
   * @param {number} index
   */
  _append(part, event, index) {
    if (event.textDelta !== undefined) (part.text ??= {}).text = (part.text?.text ?? "") + event.textDelta;
    else if (event.refusalDelta !== undefined) (part.refusal ??= {}).text = (part.refusal?.text ?? "") + event.refusalDelta;
    else if (event.reasoningDelta !== undefined) add((part.reasoning ??= {}).texts ??= [], event.textIndex, event.reasoningDelta);
    else if (event.summaryDelta) add((part.reasoning ??= {}).summaries ??= [], event.summaryDelta.summaryIndex, event.summaryDelta.text);
    else if (event.argumentsDelta !== undefined && part.toolCall) {
      if (part.toolCall.text !== undefined) part.toolCall.text += event.argumentsDelta;
      else part.toolCall.argumentsJson = (part.toolCall.argumentsJson ?? "") + event.argumentsDelta;
    } else if (event.state) part.state = event.state;
    else if (event.mediaDelta) this._appendMedia(part, event.mediaDelta, index);
    else return false;
    return true;
  }

  /**
   * @param {Part} part
   * @param {{data?: string, transcript?: string}} delta
   * @param {number} index
   */
  _appendMedia(part, { data, transcript }, index) {
    if (!part.media) return;
    if (transcript) part.media.transcript = (part.media.transcript ?? "") + transcript;
    if (!data) return;
    const pieces = this._media.get(index) ?? [bytesOf(part.media.data ?? "")];
    pieces.push(bytesOf(data));
    this._media.set(index, pieces);
    part.media.data = base64Of(pieces); // a medium is sent in few pieces
  }
}

/**
 * @param {string[]} texts
 * @param {number | undefined} index
 * @param {string | undefined} added
 */
function add(texts, index = 0, added = "") {
  while (texts.length <= index) texts.push("");
  texts[index] += added;
}

/**
 * Return bytes in base64.
 * @param {Uint8Array[]} pieces
 */
export function base64Of(pieces) {
  let characters = "";
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += 0x8000) characters += String.fromCharCode(...piece.subarray(at, at + 0x8000));
  }
  return btoa(characters);
}
