// Runs the scenarios of clients/scenarios.json and prints the results of each as a line of JSON.
//
// Environment: UMG_ADDRESS (HOST:PORT of gRPC), UMG_API_KEY, UMG_ADMIN_KEY, UMG_SCENARIOS (path of the file), UMG_ONLY
// (names of scenarios, separated by commas) for some of them; UMG_PROTOCOL=connect with the HTTP address as UMG_ADDRESS.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type DescMethod, type DescService, fromJson, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { AccountService } from "../gen/umg/v1/account_service_pb.js";
import { AdminService } from "../gen/umg/v1/admin_service_pb.js";
import { AlertService } from "../gen/umg/v1/alert_service_pb.js";
import { AuditService } from "../gen/umg/v1/audit_service_pb.js";
import { ChannelService } from "../gen/umg/v1/channel_service_pb.js";
import { ConfigService } from "../gen/umg/v1/config_service_pb.js";
import { ModelPriceService } from "../gen/umg/v1/model_price_service_pb.js";
import { TaskService } from "../gen/umg/v1/task_service_pb.js";
import { UserService } from "../gen/umg/v1/user_service_pb.js";
import type { ToolCall } from "../gen/umg/v1/content_pb.js";
import { EmbeddingService, EmbedRequestSchema } from "../gen/umg/v1/embedding_service_pb.js";
import { FileService } from "../gen/umg/v1/file_service_pb.js";
import { GenerateRequestSchema } from "../gen/umg/v1/generation_pb.js";
import { GenerationService } from "../gen/umg/v1/generation_service_pb.js";
import { GenerateImageRequestSchema, ImageService } from "../gen/umg/v1/image_service_pb.js";
import { ModelService } from "../gen/umg/v1/model_service_pb.js";
import { ModerationService } from "../gen/umg/v1/moderation_service_pb.js";
import { RerankService } from "../gen/umg/v1/rerank_service_pb.js";
import { SpeechService } from "../gen/umg/v1/speech_service_pb.js";
import { TranscriptionService } from "../gen/umg/v1/transcription_service_pb.js";
import { VideoTaskSchema } from "../gen/umg/v1/video_pb.js";
import { CreateVideoTaskRequestSchema, VideoService } from "../gen/umg/v1/video_service_pb.js";
import { chat, Code, connect, download, floats, runTools, text, type Umg, UmgError, user } from "./client.js";

type Json = { [name: string]: JsonValue };

interface Arguments {
  method: string;
  request: Json;
  model: string;
  text: string;
  instructions?: string;
  image: Json;
  task_id?: string;
  deadline_ms?: number;
  cancel_after_events?: number;
  large_text_bytes?: number;
  key?: string;
  retries?: number;
  metadata?: { [name: string]: string };
}

interface Scenario {
  name: string;
  steps: { call: string; args?: Json; save?: string }[];
}

const SERVICES: { [name: string]: [DescService, keyof Umg] } = {
  AccountService: [AccountService, "accounts"],
  AdminService: [AdminService, "admin"],
  AlertService: [AlertService, "alerts"],
  AuditService: [AuditService, "audit"],
  ChannelService: [ChannelService, "channels"],
  ConfigService: [ConfigService, "config"],
  ModelPriceService: [ModelPriceService, "modelPrices"],
  TaskService: [TaskService, "tasks"],
  UserService: [UserService, "users"],
  EmbeddingService: [EmbeddingService, "embeddings"],
  FileService: [FileService, "files"],
  GenerationService: [GenerationService, "generation"],
  ImageService: [ImageService, "images"],
  ModelService: [ModelService, "models"],
  ModerationService: [ModerationService, "moderations"],
  RerankService: [RerankService, "rerank"],
  SpeechService: [SpeechService, "speech"],
  TranscriptionService: [TranscriptionService, "transcriptions"],
  VideoService: [VideoService, "videos"],
};

/** The method that the arguments name, with its request. */
function method(umg: Umg, args: Arguments): [DescMethod, (options: CallOptions) => unknown] {
  const [serviceName = "", name] = args.method.split("/");
  const [service, member] = SERVICES[serviceName] ?? [];
  const found = service?.methods.find((each) => each.name === name);
  if (!found || !member) throw new Error(`there is no method ${args.method}`);
  const stub = umg[member] as unknown as { [name: string]: (request: Message, options: CallOptions) => unknown };
  const request = fromJson(found.input, lengthened(args));
  return [found, (options) => stub[found.localName]!(request, options)];
}

/** Return the request, with the text of its last message as long as `large_text_bytes`. */
function lengthened({ request = {}, large_text_bytes: size }: Arguments): Json {
  if (size === undefined) return request;
  const generation = (request["request"] ?? request) as { messages: { parts: { text: Json }[] }[] };
  generation.messages.at(-1)!.parts[0]!.text["text"] = "word ".repeat(size / 5 + 1).slice(0, size);
  return request;
}

const CALLS: { [name: string]: (umg: Umg, args: Arguments, options: CallOptions) => Promise<Json> } = {
  async unary(umg, args, options) {
    const [{ output }, call] = method(umg, args);
    return { answer: toJson(output, (await call(options)) as Message) };
  },
  async stream(umg, args, options) {
    const [{ output }, call] = method(umg, args);
    const events: JsonValue[] = [];
    try {
      for await (const message of call(options) as AsyncIterable<Message>)
        if (events.push(toJson(output, message)) === args.cancel_after_events) return { events, ended: "cancelled" };
    } catch (error) {
      return { events, ...described(error) };
    }
    return { events, ended: "done" };
  },
  async chat(umg, { model, text, instructions }, options) {
    const request = { model, messages: [user(text)], instructions: instructions ? user(instructions).parts : [] };
    let value = "";
    for await (const piece of chat(umg, request, options)) value += piece;
    return { value };
  },
  async tool_loop(umg, { request }) {
    const weather = ({ input }: ToolCall): string => `sunny in ${(JSON.parse(String(input.value)) as { city: string }).city}`;
    return { value: text(await runTools(umg, fromJson(GenerateRequestSchema, request), weather)) };
  },
  async floats(umg, { request }, options) {
    const { embeddings } = await umg.embeddings.embed(fromJson(EmbedRequestSchema, request), options);
    return { value: { count: embeddings.length, first: [...floats(embeddings[0]!)] } };
  },
  async download(umg, { task_id, image }) {
    const progress: (number | null)[][] = [];
    const record = (received: number, total: number | undefined): unknown => progress.push([received, total ?? null]);
    const content = await (task_id === undefined
      ? downloadImage(umg, image, record)
      : download(umg.videos.downloadVideo({ taskId: task_id }), record));
    const sha256 = createHash("sha256").update(new Uint8Array(await content.arrayBuffer())).digest("hex");
    const { size, type } = content;
    return { value: { size, mime_type: type, sha256, progress: progress.length, last: progress.at(-1)! } };
  },
  async watch(umg, { request }) {
    let { task } = await umg.videos.createVideoTask(fromJson(CreateVideoTaskRequestSchema, request));
    let updates = 0;
    for await (const update of umg.videos.watchVideoTask({ taskId: task!.taskId })) [task, updates] = [update.task, updates + 1];
    return { answer: toJson(VideoTaskSchema, task!), updates };
  },
};

/** Make an image and return its bytes, which are in its message or in a file of the gateway. */
async function downloadImage(umg: Umg, request: Json, record: (received: number, total: number | undefined) => void): Promise<Blob> {
  const { result } = await umg.images.generateImage(fromJson(GenerateImageRequestSchema, request));
  const { content, mimeType } = result!.images[0]!;
  if (content.case !== "data") return download(umg.files.downloadFile({ token: content.value!.split("/").at(-1)! }), record);
  record(content.value.length, content.value.length);
  return new Blob([content.value as Uint8Array<ArrayBuffer>], { type: mimeType });
}

function described(error: unknown): Json {
  if (!(error instanceof UmgError)) return { failure: String(error) };
  const { reason, code, field, metadata, retryable, retryAfter, requestId, message } = error;
  const name = code === Code.Canceled ? "CANCELLED" : Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
  return {
    error: {
      reason, field, code: name, status: code, retryable, retry_after: retryAfter ?? null,
      request_id: requestId, metadata, message,
    },
  };
}

/** Return a value with its references to results of former steps, `${NAME.path}`, replaced. */
function replaced(value: JsonValue, saved: Json): JsonValue {
  if (Array.isArray(value)) return value.map((item) => replaced(item, saved));
  if (value !== null && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, replaced(member, saved)]));
  if (typeof value !== "string") return value;
  const whole = value.match(/^\$\{([\w.]+)\}$/)?.[1];
  if (whole !== undefined) return referred(whole, saved);
  return value.replace(/\$\{([\w.]+)\}/g, (_, path: string) => String(referred(path, saved)));
}

function referred(path: string, saved: Json): JsonValue {
  let value: JsonValue | undefined = saved;
  for (const name of path.split(".")) value = (value as Json | undefined | null)?.[name];
  return value ?? null;
}

const clients = new Map<string, Umg>();

function client({ key = process.env["UMG_API_KEY"] ?? "", retries = 2 }: Arguments): Umg {
  const id = `${key} ${retries}`;
  const secret = key === "admin" ? (process.env["UMG_ADMIN_KEY"] ?? "") : key;
  const protocol = process.env["UMG_PROTOCOL"] === "connect" ? "connect" : "grpc";
  const umg = clients.get(id) ?? connect(process.env["UMG_ADDRESS"] ?? "", secret, { retries, protocol });
  clients.set(id, umg);
  return umg;
}

async function run({ steps }: Scenario): Promise<Json[]> {
  const saved: Json = {};
  const results: Json[] = [];
  for (const step of steps) {
    const args = replaced(step.args ?? {}, saved) as unknown as Arguments;
    const timeout = args.deadline_ms === undefined ? {} : { timeoutMs: args.deadline_ms };
    const options = { headers: args.metadata ?? {}, ...timeout };
    const result = await Promise.resolve()
      .then(() => CALLS[step.call]!(client(args), args, options))
      .catch(described);
    results.push(result);
    if (step.save !== undefined) saved[step.save] = result;
  }
  return results;
}

const only = (process.env["UMG_ONLY"] ?? "").split(",").filter(Boolean);
const { scenarios } = JSON.parse(readFileSync(process.env["UMG_SCENARIOS"]!, "utf8")) as { scenarios: Scenario[] };
for (const scenario of scenarios)
  if (only.length === 0 || only.includes(scenario.name))
    console.log(JSON.stringify({ name: scenario.name, results: await run(scenario) }));
for (const umg of clients.values()) umg.close();
