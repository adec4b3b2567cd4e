// A client of the Unified Model Gateway: its generated services, and short forms of common calls.
import { clone, create, type MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { open } from "#transport";
import { AdminService } from "../gen/umg/v1/admin_service_pb.js";
import { type Message, MessageSchema, type Part, PartSchema, Role } from "../gen/umg/v1/content_pb.js";
import type { Embedding } from "../gen/umg/v1/embedding_pb.js";
import { EmbeddingService } from "../gen/umg/v1/embedding_service_pb.js";
import type { ContentHead } from "../gen/umg/v1/file_pb.js";
import { FileService } from "../gen/umg/v1/file_service_pb.js";
import { GenerateRequestSchema, type GenerateResponse } from "../gen/umg/v1/generation_pb.js";
import { GenerationService } from "../gen/umg/v1/generation_service_pb.js";
import type { Image } from "../gen/umg/v1/image_pb.js";
import { ImageService } from "../gen/umg/v1/image_service_pb.js";
import { ModelService } from "../gen/umg/v1/model_service_pb.js";
import { RerankService } from "../gen/umg/v1/rerank_service_pb.js";
import type { VideoTask } from "../gen/umg/v1/video_pb.js";
import { type CreateVideoTaskRequestSchema, VideoService } from "../gen/umg/v1/video_service_pb.js";
import { calls, type Defaults } from "./calls.js";
import type { Connection, Protocol } from "./transport.js";

export { Code } from "@connectrpc/connect";
export { ErrorReason } from "../gen/umg/v1/error_reason_pb.js";
export { UmgError } from "./calls.js";

/** Options of a client. */
export interface Options extends Defaults {
  /** `grpc`, the default of Node, or `connect`, the default of browsers, with the HTTP address of the gateway. */
  protocol?: Protocol;
  /** Options of Node's `tls.connect`, e.g. `ca` for an authority of your own. */
  tls?: object;
}

/** Return a client of the gateway at `HOST:PORT`, or at a URL: `https://HOST:PORT` connects by TLS. An empty key sends
 * none. The first call connects. */
export function connect(address: string, key: string, options: Options = {}): Umg {
  const baseUrl = address.includes("://") ? address : `http://${address}`;
  return new Umg(open(baseUrl, options.protocol, options.tls), key, options);
}

/** Called with the number of bytes so far and of all bytes, undefined where the gateway does not have it. */
export type Progress = (received: number, total: number | undefined) => void;

/** Bytes of an image or a video. */
export interface Content {
  data: Uint8Array;
  mimeType: string;
}

/** Functions by the names of their tools; they receive the arguments of a call and return or resolve its output. */
export type Tools = { [name: string]: (args: never) => unknown };

/** The services of a gateway. A failed call throws an UmgError. Leaving the loop over a stream cancels its call, and the
 * gateway then cancels the call to the provider. */
export class Umg {
  readonly admin; readonly embeddings; readonly files; readonly generation;
  readonly images; readonly models; readonly rerank; readonly videos;

  constructor(private readonly connection: Connection, key: string, defaults: Defaults = {}) {
    const { transport } = connection;
    this.admin = calls(AdminService, transport, key, defaults);
    this.embeddings = calls(EmbeddingService, transport, key, defaults);
    this.files = calls(FileService, transport, key, defaults);
    this.generation = calls(GenerationService, transport, key, defaults);
    this.images = calls(ImageService, transport, key, defaults);
    this.models = calls(ModelService, transport, key, defaults);
    this.rerank = calls(RerankService, transport, key, defaults);
    this.videos = calls(VideoService, transport, key, defaults);
  }

  /** End the connection, which otherwise keeps Node running. */
  close(): void {
    this.connection.close();
  }

  /** Yield the answer of a model to one text, in pieces. */
  async *chat(model: string, text: string, options: CallOptions & { instructions?: string } = {}): AsyncGenerator<string> {
    const instructions = options.instructions ? [textPart(options.instructions)] : [];
    const request = { model, messages: [user(text)], instructions };
    for await (const { events } of this.generation.streamGenerate({ request }, options))
      for (const { kind } of events) if (kind.case === "textDelta") yield kind.value;
  }

  /** Return the first answer without tool calls. The calls of the answers before it are run by `tools`, and their
   * results are sent with the next request. After `maxAnswers` the last answer is returned as it is. */
  async runTools(request: MessageInitShape<typeof GenerateRequestSchema>, tools: Tools, maxAnswers = 10): Promise<GenerateResponse> {
    const sent = clone(GenerateRequestSchema, create(GenerateRequestSchema, request));
    for (let count = 1; ; count++) {
      const answer = await this.generation.generate(sent);
      const message = answer.candidates[0]?.message;
      const results = await Promise.all((message?.parts ?? []).flatMap((part) => result(part, tools)));
      if (!message || results.length === 0 || count >= maxAnswers) return answer;
      sent.messages.push(message, create(MessageSchema, { role: Role.TOOL, parts: results }));
    }
  }

  /** Submit a video and return its task in its final state, which may be a failure. `each` is called with every state. */
  async makeVideo(
    request: MessageInitShape<typeof CreateVideoTaskRequestSchema>, each: (task: VideoTask) => void = () => {},
  ): Promise<VideoTask | undefined> {
    let { task } = await this.videos.createVideoTask(request);
    for await (const update of this.videos.watchVideoTask({ taskId: task?.taskId ?? "" }))
      if (update.task) each((task = update.task));
    return task;
  }

  /** Return the video of a finished task. `progress` is called after each chunk. */
  downloadVideo(taskId: string, progress: Progress = () => {}): Promise<Content> {
    return collect(this.videos.downloadVideo({ taskId }), progress);
  }

  /** Return the bytes of a generated image, which are in its message or in a file of the gateway. */
  async downloadImage({ content, mimeType }: Image, progress: Progress = () => {}): Promise<Content> {
    if (content.case === "data") {
      progress(content.value.length, content.value.length);
      return { data: content.value, mimeType };
    }
    const token = content.value?.match(/\/files\/([^?]+)/)?.[1];
    if (!token) throw new TypeError("the image is at an address of its provider, not of the gateway: fetch it yourself");
    return collect(this.files.downloadFile({ token }), progress);
  }
}

/** Return a part with this text. */
export function textPart(text: string): Part {
  return create(PartSchema, { kind: { case: "text", value: { text } } });
}

/** Return a user's message with this text. */
export function user(text: string): Message {
  return create(MessageSchema, { role: Role.USER, parts: [textPart(text)] });
}

/** Return the text of an answer's first candidate, "" without one. */
export function text(answer: GenerateResponse): string {
  const parts = answer.candidates[0]?.message?.parts ?? [];
  return parts.map(({ kind }) => (kind.case === "text" ? kind.value.text : "")).join("");
}

/** Return the numbers of a vector, which are little-endian. */
export function floats({ values }: Embedding): Float32Array {
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  return Float32Array.from({ length: values.length / 4 }, (_, index) => view.getFloat32(4 * index, true));
}

/** Return the result of a part that is a tool call, in a list, else an empty list. A failure is a result too. */
function result({ kind }: Part, tools: Tools): Promise<Part>[] {
  if (kind.case !== "toolCall") return [];
  const { callId, name, input } = kind.value;
  const run = async (): Promise<unknown> => {
    const tool = tools[name];
    if (!tool) throw new Error(`there is no tool ${name}`);
    return tool((input.case === "argumentsJson" ? JSON.parse(input.value || "{}") : input.value) as never);
  };
  const part = (output: unknown, isError: boolean): Part =>
    create(PartSchema, { kind: { case: "toolResult", value: { callId, name, isError, parts: [textPart(String(output))] } } });
  return [run().then((output) => part(output, false), (error: unknown) => part(error, true))];
}

type Piece = { kind: { case: "head"; value: ContentHead } | { case: "chunk"; value: Uint8Array } | { case: undefined; value?: undefined } };

async function collect(messages: AsyncIterable<Piece>, progress: Progress): Promise<Content> {
  let head: ContentHead | undefined;
  let received = 0;
  const chunks: Uint8Array[] = [];
  for await (const { kind } of messages) {
    if (kind.case === "head") head = kind.value;
    if (kind.case !== "chunk") continue;
    chunks.push(kind.value);
    received += kind.value.length;
    progress(received, head?.totalBytes === undefined ? undefined : Number(head.totalBytes));
  }
  const data = new Uint8Array(received);
  let offset = 0;
  for (const chunk of chunks) {
    data.set(chunk, offset);
    offset += chunk.length;
  }
  return { data, mimeType: head?.mimeType ?? "" };
}
