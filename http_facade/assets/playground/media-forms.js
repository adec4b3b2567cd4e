// Fields of image and video models, by the rules of the model. A model without rules has all of them.

import { IMAGE_RULES, VIDEO_RULES } from "./media-fields.js";
import { text } from "./strings.js";

/** @typedef {import("./fields.js").Field} Field */
/** @typedef {import("./media-fields.js").Rules} Rules */
/** @typedef {import("./contract.js").Model} Model */

/** Field of images -> how it is entered. @type {Record<string, Omit<Field, "path">>} */
const IMAGE_FIELDS = {
  size: { label: text("field.size"), type: "text" },
  aspectRatio: { label: text("field.aspect_ratio"), type: "text" },
  imageSize: { label: text("field.image_size"), type: "text" },
  n: { label: text("field.n"), type: "integer", min: 1 },
  quality: { label: text("field.quality"), type: "text" },
  outputMimeType: { label: text("field.output_mime_type"), type: "text" },
  outputCompressionPercent: { label: text("field.compression"), type: "integer", min: 0, max: 100, isRare: true },
  background: { label: text("field.background"), type: "text" },
  moderation: { label: text("field.moderation"), type: "text", isRare: true },
  inputFidelity: { label: text("field.input_fidelity"), type: "text", isRare: true },
  responseModalities: { label: text("field.modalities"), type: "text", isRare: true },
  personGeneration: { label: text("field.persons"), type: "text", isRare: true },
  negativePrompt: { label: text("field.negative_prompt"), type: "text" },
  promptExtend: { label: text("field.prompt_extend"), type: "switch", isRare: true },
  guidanceScale: { label: text("field.guidance"), type: "number", isRare: true },
  watermark: { label: text("field.watermark"), type: "switch", isRare: true },
  sequentialImageGeneration: { label: text("field.group"), type: "choice", values: ["SEQUENTIAL_IMAGE_GENERATION_AUTO", "SEQUENTIAL_IMAGE_GENERATION_DISABLED"], prefix: "SEQUENTIAL_IMAGE_GENERATION_" },
  maxSequentialImages: { label: text("field.group_size"), type: "integer", min: 1, max: 4 },
  optimizePromptMode: { label: text("field.optimize"), type: "text", isRare: true },
  temperature: { label: text("field.temperature"), type: "number", min: 0, max: 2, isRare: true },
  topP: { label: text("field.top_p"), type: "number", min: 0, max: 1, isRare: true },
  maxOutputTokens: { label: text("field.max_output_tokens"), type: "integer", min: 1, isRare: true },
  seed: { label: text("field.seed"), type: "integer", min: 0, isRare: true },
};

/** Field of videos -> how it is entered. @type {Record<string, Omit<Field, "path">>} */
const VIDEO_FIELDS = {
  durationSeconds: { label: text("field.seconds"), type: "integer", min: 1, max: 60 },
  size: { label: text("field.size"), type: "text" },
  resolution: { label: text("field.resolution"), type: "text" },
  aspectRatio: { label: text("field.aspect_ratio"), type: "text" },
  mode: { label: text("field.mode"), type: "text" },
  generateAudio: { label: text("field.sound"), type: "switch" },
  negativePrompt: { label: text("field.negative_prompt"), type: "text" },
  sampleCount: { label: text("field.samples"), type: "integer", min: 1, max: 4 },
  frames: { label: text("field.frames"), type: "integer", min: 1, isRare: true },
  framesPerSecond: { label: text("field.fps"), type: "integer", min: 1, isRare: true },
  watermark: { label: text("field.watermark"), type: "switch", isRare: true },
  cameraFixed: { label: text("field.camera_fixed"), type: "switch", isRare: true },
  returnLastFrame: { label: text("field.return_last_frame"), type: "switch", isRare: true },
  promptExtend: { label: text("field.prompt_extend"), type: "switch", isRare: true },
  cfgScale: { label: text("field.cfg_scale"), type: "number", min: 0, max: 1, isRare: true },
  personGeneration: { label: text("field.persons"), type: "text", isRare: true },
  cameraControlJson: { label: text("field.camera_control"), type: "json", isRare: true },
  seed: { label: text("field.seed"), type: "integer", min: -1, isRare: true },
};

/**
 * Return the rules of an image model, or those of its family; undefined for a model that has none.
 * @param {string} id
 * @param {Model | undefined} model
 */
export const imageRules = (id, model) => IMAGE_RULES[id] ?? IMAGE_RULES[model?.family ?? ""];

/**
 * Return the rules of a video model, or those of its family; undefined for a model that has none.
 * @param {string} id
 * @param {Model | undefined} model
 */
export const videoRules = (id, model) => VIDEO_RULES[id] ?? VIDEO_RULES[model?.family ?? ""];

/** @param {Rules | undefined} rules */
export const imageFields = (rules) => fieldsOf(IMAGE_FIELDS, rules, "");

/** @param {Rules | undefined} rules */
export const videoFields = (rules) => fieldsOf(VIDEO_FIELDS, rules, "parameters.");

/**
 * @param {Record<string, Omit<Field, "path">>} table
 * @param {Rules | undefined} rules
 * @param {string} prefix
 * @returns {Field[]}
 */
function fieldsOf(table, rules, prefix) {
  return Object.entries(table).filter(([name]) => (rules ? rules.fields.includes(name) && rules.ranges[name]?.[1] !== 1 : true)).map(([name, row]) => {
    const values = rules?.values[name]?.map(String);
    const [min, max] = rules?.ranges[name] ?? [row.min, row.max];
    const usual = rules?.defaults[name];
    return {
      ...row,
      path: prefix + name,
      ...(values && row.type !== "switch" ? { type: /** @type {const} */ ("choice"), values, isNumber: row.type === "integer" } : {}),
      ...(min === undefined ? {} : { min }),
      ...(max === undefined ? {} : { max }),
      ...(usual === undefined ? {} : { placeholder: text("settings.default", { value: String(usual) }) }),
    };
  });
}

/**
 * Return the value that a required field has, where nobody chose one; undefined for a field that is not required.
 * @param {Rules | undefined} rules
 * @param {string} name
 */
export function requiredValue(rules, name) {
  if (!rules?.required.includes(name)) return undefined;
  return rules.values[name]?.[0] ?? rules.ranges[name]?.[0];
}
