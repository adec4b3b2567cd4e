//! Runs the scenarios of `UMG_SCENARIOS` and prints the results of each as a line of JSON. Judges nothing.

use std::{env, error, time::Duration};

use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, prost::Message};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{MetadataKey, MetadataMap};
use tonic::{Request, Status, client::Grpc, transport::Channel, transport::Endpoint};
use umg_client::{Client, Content, Error, MAX_ANSWER_BYTES, calls, floats, text, user, v1};

/// The schema as descriptors, by which messages are read and written in JSON.
const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schema.bin"));
type Failure = Box<dyn error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(env::var("UMG_SCENARIOS")?)?)?;
    let only = env::var("UMG_ONLY").unwrap_or_default();
    let runner = Runner {
        channel: Endpoint::from_shared(format!("http://{}", env::var("UMG_ADDRESS")?))?.connect_lazy(),
        schema: DescriptorPool::decode(SCHEMA)?,
    };
    for scenario in file["scenarios"].as_array().into_iter().flatten() {
        let name = scenario["name"].as_str().unwrap_or_default();
        if only.is_empty() || only.split(',').any(|wanted| wanted == name) {
            println!("{}", json!({"name": name, "results": runner.scenario(scenario).await}));
        }
    }
    Ok(())
}

struct Runner {
    channel: Channel,
    schema: DescriptorPool,
}

impl Runner {
    async fn scenario(&self, scenario: &Value) -> Vec<Value> {
        let (mut results, mut saved) = (Vec::new(), Map::new());
        for step in scenario["steps"].as_array().into_iter().flatten() {
            let args = replaced(&step["args"], &saved);
            let result = self.step(step["call"].as_str().unwrap_or_default(), args).await.unwrap_or_else(described);
            saved.insert(step["save"].as_str().unwrap_or_default().into(), result.clone());
            results.push(result);
        }
        results
    }

    async fn step(&self, call: &str, args: Value) -> Result<Value, Failure> {
        let mut client = self.client(&args)?;
        match call {
            "unary" | "stream" => self.generic(client, args, call == "stream").await,
            "chat" => Ok(json!({"value": chat(client, &args).await?})),
            "tool_loop" => {
                let answer = client.run_tools(self.typed("GenerateRequest", &args["request"])?, weather).await?;
                Ok(json!({"value": text(&answer)}))
            }
            "floats" => {
                let request: v1::EmbedRequest = self.typed("EmbedRequest", &args["request"])?;
                let vectors = client.embeddings.embed(request).await.map_err(Error::from)?.into_inner().embeddings;
                Ok(json!({"value": {"count": vectors.len(), "first": floats(&vectors[0])}}))
            }
            "download" => self.download(client, args).await,
            "watch" => {
                let (task, updates) = watch(client, self.typed("CreateVideoTaskRequest", &args["request"])?).await?;
                let mut answer = DynamicMessage::new(self.message("VideoTask")?);
                answer.transcode_from(&task)?;
                Ok(json!({"answer": answer, "updates": updates}))
            }
            other => Err(format!("there is no call {other}").into()),
        }
    }

    fn client(&self, args: &Value) -> Result<Client, Failure> {
        let key = match args["key"].as_str() {
            Some("admin") => env::var("UMG_ADMIN_KEY")?,
            Some(key) => key.into(),
            None => env::var("UMG_API_KEY")?,
        };
        let deadline = args["deadline_ms"].as_u64().map(Duration::from_millis);
        Ok(calls(self.channel.clone(), &key, deadline, args["retries"].as_u64().unwrap_or(2) as u32)?.into())
    }

    /// Calls a method by its name, with a request and answers that are known by the schema alone.
    async fn generic(&self, client: Client, mut args: Value, streamed: bool) -> Result<Value, Failure> {
        let (service, name) = string(&args["method"]).split_once('/').ok_or("a method is SERVICE/METHOD")?;
        let service = self.schema.get_service_by_name(&format!("umg.v1.{service}")).ok_or("no such service")?;
        let method = service.methods().find(|method| method.name() == name).ok_or("no such method")?;
        let path = format!("/{}/{name}", service.full_name()).parse()?;
        if let Some(size) = args["large_text_bytes"].as_u64() {
            enlarge(&mut args["request"], size as usize);
        }
        let mut request = Request::new(parsed(method.input(), &args["request"])?);
        for (name, value) in args["metadata"].as_object().into_iter().flatten() {
            request.metadata_mut().insert(name.parse::<MetadataKey<_>>()?, string(value).parse()?);
        }
        let (codec, mut grpc) = (Dynamic(method.output()), Grpc::new(client.calls));
        grpc = grpc.max_decoding_message_size(MAX_ANSWER_BYTES);
        if !streamed {
            let answer = grpc.unary(request, path, codec).await.map_err(Error::from)?;
            return Ok(with(json!({"answer": answer.get_ref()}), answer.metadata()));
        }
        let answer = match grpc.server_streaming(request, path, codec).await {
            Ok(answer) => answer,
            Err(status) => return Ok(json!({"events": [], "error": described(Error::from(status).into())["error"]})),
        };
        let (metadata, mut answers, _) = answer.into_parts();
        let (mut events, cancel) = (Vec::new(), args["cancel_after_events"].as_u64().unwrap_or(u64::MAX));
        while (events.len() as u64) < cancel {
            match answers.message().await {
                Ok(Some(event)) => events.push(serde_json::to_value(event)?),
                Ok(None) => return Ok(with(json!({"events": events, "ended": "done"}), &metadata)),
                Err(status) => {
                    return Ok(json!({"events": events, "error": described(Error::from(status).into())["error"]}));
                }
            }
        }
        Ok(with(json!({"events": events, "ended": "cancelled"}), &metadata)) // dropping the stream cancels the call
    }

    async fn download(&self, mut client: Client, args: Value) -> Result<Value, Failure> {
        let mut progress = Vec::new();
        let record = |received, head: &v1::ContentHead| progress.push((received, head.total_bytes));
        let (data, head) = if let Some(task) = args["task_id"].as_str() {
            client.video(task, record).await?
        } else {
            image(client, self.typed("GenerateImageRequest", &args["image"])?, record).await?
        };
        let hash: String = Sha256::digest(&data).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(json!({"value": {
            "size": data.len(),
            "mime_type": head.mime_type,
            "sha256": hash,
            "progress": progress.len(),
            "last": progress.last(),
        }}))
    }

    fn message(&self, name: &str) -> Result<MessageDescriptor, Failure> {
        Ok(self.schema.get_message_by_name(&format!("umg.v1.{name}")).ok_or("no such message")?)
    }

    fn typed<T: Message + Default>(&self, name: &str, request: &Value) -> Result<T, Failure> {
        Ok(parsed(self.message(name)?, request)?.transcode_to()?)
    }
}

async fn chat(mut client: Client, args: &Value) -> Result<String, Error> {
    let messages = vec![user(string(&args["text"]))];
    let mut request = v1::GenerateRequest { model: string(&args["model"]).into(), messages, ..Default::default() };
    if let Some(instructions) = args["instructions"].as_str() {
        request.instructions = user(instructions).parts;
    }
    let request = v1::StreamGenerateRequest { request: Some(request) };
    let (mut answers, mut text) = (client.generation.stream_generate(request).await?.into_inner(), String::new());
    while let Some(answer) = answers.message().await? {
        for event in answer.events {
            if let Some(v1::generate_event::Kind::TextDelta(delta)) = event.kind {
                text += &delta;
            }
        }
    }
    Ok(text)
}

/// Submits a video and returns the last state of its task, with the number of states.
async fn watch(mut client: Client, request: v1::CreateVideoTaskRequest) -> Result<(v1::VideoTask, u32), Error> {
    let mut task = client.videos.create_video_task(request).await?.into_inner().task.unwrap_or_default();
    let request = v1::WatchVideoTaskRequest { task_id: task.task_id.clone() };
    let (mut states, mut updates) = (client.videos.watch_video_task(request).await?.into_inner(), 0);
    while let Some(state) = states.message().await? {
        (task, updates) = (state.task.unwrap_or_default(), updates + 1);
    }
    Ok((task, updates))
}

/// Makes an image and returns its bytes, which are in its message or in a file of the gateway.
async fn image(
    mut client: Client,
    request: v1::GenerateImageRequest,
    mut record: impl FnMut(usize, &v1::ContentHead),
) -> Result<Content, Error> {
    let answer = client.images.generate_image(request).await?.into_inner();
    let image = answer.result.unwrap_or_default().images.swap_remove(0);
    match image.content {
        Some(v1::image::Content::Data(data)) => {
            let total_bytes = Some(data.len() as i64);
            let head = v1::ContentHead { mime_type: image.mime_type, total_bytes, ..Default::default() };
            record(data.len(), &head);
            Ok((data.to_vec(), head))
        }
        Some(v1::image::Content::Url(url)) => client.file(url.rsplit('/').next().unwrap_or_default(), record).await,
        None => Ok(Content::default()),
    }
}

fn parsed(form: MessageDescriptor, value: &Value) -> Result<DynamicMessage, Failure> {
    let value = if value.is_null() { json!({}) } else { value.clone() };
    Ok(DynamicMessage::deserialize(form, value)?)
}

async fn weather(call: &v1::ToolCall) -> Result<String, String> {
    let Some(v1::tool_call::Input::ArgumentsJson(arguments)) = &call.input else { return Err("no arguments".into()) };
    let arguments: Value = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
    Ok(format!("sunny in {}", string(&arguments["city"])))
}

/// Makes the text of the last message this long.
fn enlarge(request: &mut Value, size: usize) {
    let generation = if request["request"].is_object() { &mut request["request"] } else { request };
    if let Some(message) = generation["messages"].as_array_mut().and_then(|messages| messages.last_mut()) {
        let mut long = "word ".repeat(size / 5 + 1);
        long.truncate(size);
        message["parts"][0]["text"]["text"] = long.into();
    }
}

/// Replaces `${NAME.path}` by values of former results.
fn replaced(value: &Value, saved: &Map<String, Value>) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), replaced(member, saved))).collect()
        }
        Value::Array(items) => items.iter().map(|item| replaced(item, saved)).collect(),
        Value::String(text) => {
            let Some((before, rest)) = text.split_once("${") else { return value.clone() };
            let Some((path, after)) = rest.split_once('}') else { return value.clone() };
            let found = found(path, saved);
            if before.is_empty() && after.is_empty() {
                return found;
            }
            let shown = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            replaced(&Value::String(format!("{before}{shown}{after}")), saved)
        }
        _ => value.clone(),
    }
}

fn found(path: &str, saved: &Map<String, Value>) -> Value {
    let (name, path) = path.split_once('.').unwrap_or((path, ""));
    let pointer: String = path.split('.').map(|step| format!("/{step}")).collect();
    saved.get(name).and_then(|result| result.pointer(&pointer)).cloned().unwrap_or_default()
}

fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Adds what the metadata of a response says to a result.
fn with(mut result: Value, metadata: &MetadataMap) -> Value {
    for (name, header) in [("request_id", "x-request-id"), ("dropped", "x-umg-dropped")] {
        if let Some(value) = metadata.get(header).and_then(|value| value.to_str().ok()) {
            result[name] = value.into();
        }
    }
    result
}

fn described(failure: Failure) -> Value {
    let Some(error) = failure.downcast_ref::<Error>() else { return json!({"failure": failure.to_string()}) };
    let code = error.status.code();
    json!({"error": {
        "reason": error.reason.as_str_name().trim_start_matches("ERROR_REASON_"),
        "field": error.field,
        "code": CODES[code as usize],
        "status": code as i32,
        "retryable": error.retryable,
        "retry_after": error.retry_after.map(|time| time.as_secs_f64()),
        "request_id": error.request_id,
        "metadata": error.metadata,
        "message": error.status.message(),
    }})
}

/// Names of the codes of gRPC, which tonic does not have.
const CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Codec of messages that are known by their descriptors.
struct Dynamic(MessageDescriptor);

impl Codec for Dynamic {
    type Encode = DynamicMessage;
    type Decode = DynamicMessage;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0.clone())
    }

    fn decoder(&mut self) -> Self {
        Self(self.0.clone())
    }
}

impl Encoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn encode(&mut self, message: DynamicMessage, buffer: &mut EncodeBuf) -> Result<(), Status> {
        message.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for Dynamic {
    type Item = DynamicMessage;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf) -> Result<Option<DynamicMessage>, Status> {
        let message = DynamicMessage::decode(self.0.clone(), buffer);
        message.map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
