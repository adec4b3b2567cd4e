// A client of the Unified Model Gateway: its generated services, and short forms of common calls.
import { clone, create, type DescService, type MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { open } from "#transport";
import { AccountService } from "../gen/umg/v1/account_service_pb.js";
import { AdminService } from "../gen/umg/v1/admin_service_pb.js";
import { AlertService } from "../gen/umg/v1/alert_service_pb.js";
import { AuditService } from "../gen/umg/v1/audit_service_pb.js";
import { ChannelService } from "../gen/umg/v1/channel_service_pb.js";
import { ConfigService } from "../gen/umg/v1/config_service_pb.js";
import { ModelPriceService } from "../gen/umg/v1/model_price_service_pb.js";
import { TaskService } from "../gen/umg/v1/task_service_pb.js";
import { UserService } from "../gen/umg/v1/user_service_pb.js";
import * as v1 from "../gen/umg/v1/content_pb.js";
import type { Embedding } from "../gen/umg/v1/embedding_pb.js";
import { EmbeddingService } from "../gen/umg/v1/embedding_service_pb.js";
import { ContentHeadSchema } from "../gen/umg/v1/file_pb.js";
import { type DownloadFileResponse, FileService } from "../gen/umg/v1/file_service_pb.js";
import { GenerateRequestSchema, type GenerateResponse } from "../gen/umg/v1/generation_pb.js";
import { GenerationService } from "../gen/umg/v1/generation_service_pb.js";
import { ImageService } from "../gen/umg/v1/image_service_pb.js";
import { ModelService } from "../gen/umg/v1/model_service_pb.js";
import { ModerationService } from "../gen/umg/v1/moderation_service_pb.js";
import { RerankService } from "../gen/umg/v1/rerank_service_pb.js";
import { SpeechService } from "../gen/umg/v1/speech_service_pb.js";
import { TranscriptionService } from "../gen/umg/v1/transcription_service_pb.js";
import { type DownloadVideoResponse, VideoService } from "../gen/umg/v1/video_service_pb.js";
import { calls, type Options } from "./calls.js";
export { Code } from "@connectrpc/connect";
export { type Options, UmgError } from "./calls.js";
type Request = MessageInitShape<typeof GenerateRequestSchema>;
type Tool = (call: v1.ToolCall) => string | Promise<string>;
/** The services of a gateway. A failed call throws an UmgError. Leaving the loop over a stream cancels its call. */
export type Umg = ReturnType<typeof connect>;

/** Return a client of the gateway at `HOST:PORT`, or at a URL: `https://HOST:PORT` connects by TLS. An empty key sends
 * none. The first call connects; `close` ends the connection, which otherwise keeps Node running. */
export function connect(address: string, key: string, options: Options = {}) {
  const url = address.includes("://") ? address : `http://${address}`;
  const { transport, close } = open(url, options.protocol, options.tls);
  const service = <S extends DescService>(description: S) => calls(description, transport, key, options);
  return {
    accounts: service(AccountService), admin: service(AdminService), alerts: service(AlertService),
    audit: service(AuditService), channels: service(ChannelService), config: service(ConfigService),
    embeddings: service(EmbeddingService), files: service(FileService), generation: service(GenerationService),
    images: service(ImageService), modelPrices: service(ModelPriceService), models: service(ModelService),
    moderations: service(ModerationService), rerank: service(RerankService), speech: service(SpeechService),
    tasks: service(TaskService), transcriptions: service(TranscriptionService), users: service(UserService),
    videos: service(VideoService), close,
  };
}

/** Return a user's message with this text. */
export function user(text: string): v1.Message {
  return create(v1.MessageSchema, { role: v1.Role.USER, parts: [{ kind: { case: "text", value: { text } } }] });
}

/** Return the text of a response's first candidate, "" without one. */
export function text(answer: GenerateResponse): string {
  return (answer.candidates[0]?.message?.parts ?? []).map(({ kind: k }) => (k.case === "text" ? k.value.text : "")).join("");
}

/** Return the numbers of a vector, which are little-endian. */
export function floats({ values }: Embedding): Float32Array {
  const view = new DataView(values.buffer, values.byteOffset, values.byteLength);
  return Float32Array.from({ length: values.length / 4 }, (_, index) => view.getFloat32(4 * index, true));
}

/** Yield the text of a response in pieces, as it is made. */
export async function* chat(umg: Umg, request: Request, options?: CallOptions): AsyncGenerator<string> {
  for await (const { events } of umg.generation.streamGenerate({ request }, options))
    for (const { kind } of events) if (kind.case === "textDelta") yield kind.value;
}

/** Return the first answer without tool calls, or the twentieth. `tool` returns a call's output; a failure is one. */
export async function runTools(umg: Umg, request: Request, tool: Tool): Promise<GenerateResponse> {
  const sent = clone(GenerateRequestSchema, create(GenerateRequestSchema, request));
  for (let count = 1; ; count++) {
    const answer = await umg.generation.generate(sent);
    const message = answer.candidates[0]?.message ?? user("");
    const results = message.parts.flatMap(({ kind }) => (kind.case === "toolCall" ? result(kind.value, tool) : []));
    if (results.length === 0 || count === 20) return answer;
    sent.messages.push(message, create(v1.MessageSchema, { role: v1.Role.TOOL, parts: await Promise.all(results) }));
  }
}

async function result(call: v1.ToolCall, tool: Tool): Promise<v1.Part> {
  const value = create(v1.ToolResultSchema, { callId: call.callId, name: call.name });
  const output = await Promise.resolve(call).then(tool).catch((error) => ((value.isError = true), String(error)));
  value.parts = user(output).parts;
  return create(v1.PartSchema, { kind: { case: "toolResult", value } });
}

/** Return the streamed content of a download. `progress` gets the bytes so far, and of all if the gateway has it. */
export async function download(
  messages: AsyncIterable<DownloadVideoResponse | DownloadFileResponse>,
  progress: (received: number, total: number | undefined) => void = () => {},
): Promise<Blob> {
  let [head, received] = [create(ContentHeadSchema), 0];
  const chunks: BlobPart[] = [];
  for await (const { kind } of messages) {
    if (kind.case === "head") head = kind.value;
    if (kind.case !== "chunk") continue;
    received += kind.value.length;
    chunks.push(kind.value as Uint8Array<ArrayBuffer>);
    progress(received, head.totalBytes === undefined ? undefined : Number(head.totalBytes));
  }
  return new Blob(chunks, { type: head.mimeType });
}
