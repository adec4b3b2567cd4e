//! Client of the Unified Model Gateway: [`connect`] makes a [`Client`], which has a generated client for each service.

use std::{collections::HashMap, error, fmt, iter::successors, time::Duration};

use http::HeaderValue;
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_stream::StreamExt;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, ConnectError, Status, TimeoutExpired, body::Body, metadata::MetadataValue};
use tonic_types::StatusExt;
use tower::{Service, ServiceExt, service_fn, util::BoxCloneSyncService};
use v1::{ContentHead, ErrorReason, part::Kind};

/// Messages and clients of the schema, as generated.
#[allow(clippy::all, rustdoc::all)]
pub mod v1 {
    tonic::include_proto!("umg.v1");
}

/// Size of the largest message that is received. An answer to [`v1::EmbedRequest`] can exceed tonic's own 4 MiB.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
const REQUEST_ID: &str = "x-request-id";
const READS: [&str; 5] = ["/Get", "/List", "/Count", "/Watch", "/Download"];
type Failure = Box<dyn error::Error + Send + Sync>;
type Request = http::Request<Body>;
type Response = http::Response<Body>;
/// The bytes of an image or a video, and what the gateway states of them.
pub type Content = (Vec<u8>, ContentHead);
/// A connection that gives each call the key, a request id, a deadline and retries.
pub type Calls = BoxCloneSyncService<Request, Response, Status>;

// The struct `Client`, which has a client of each service, made by `build.rs`.
include!(concat!(env!("OUT_DIR"), "/client.rs"));

/// Collects the content of a download. The responses of both downloads have the same form, but not the same type.
macro_rules! collect {
    ($answers:expr, $module:ident, $progress:ident) => {{
        let (mut answers, mut head, mut data) = ($answers.into_inner(), ContentHead::default(), Vec::new());
        while let Some(answer) = answers.message().await? {
            match answer.kind {
                Some(v1::$module::Kind::Head(first)) => head = first,
                Some(v1::$module::Kind::Chunk(chunk)) => {
                    data.extend_from_slice(&chunk);
                    $progress(data.len(), &head);
                }
                None => {}
            }
        }
        Ok((data, head))
    }};
}

/// Makes a client of the gateway at `http://HOST:PORT`, or with TLS at `https://HOST:PORT`, without a deadline and with
/// two retries. The first call connects.
pub fn connect(url: &str, key: &str) -> Result<Client, Failure> {
    let endpoint = Endpoint::from_shared(url.to_owned())?.connect_timeout(Duration::from_secs(10));
    #[cfg(feature = "tls")]
    let endpoint = match url.starts_with("https:") {
        true => endpoint.tls_config(tonic::transport::ClientTlsConfig::new().with_enabled_roots())?,
        false => endpoint,
    };
    Ok(calls(endpoint.connect_lazy(), key, None, 2)?.into())
}

/// Makes a connection whose calls fail after the deadline. A call that fails before its first message is repeated if it
/// only reads, or if nothing of it was done, after the time that the failure's `RetryInfo` states.
pub fn calls(channel: Channel, key: &str, deadline: Option<Duration>, retries: u32) -> Result<Calls, Failure> {
    let key: Option<HeaderValue> = if key.is_empty() { None } else { Some(format!("Bearer {key}").parse()?) };
    Ok(BoxCloneSyncService::new(service_fn(move |mut request: Request| {
        if let Some(key) = &key {
            request.headers_mut().entry("authorization").or_insert(key.clone());
        }
        send(channel.clone(), deadline, retries, request)
    })))
}

async fn send(channel: Channel, limit: Option<Duration>, retries: u32, request: Request) -> Result<Response, Status> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let id = || uuid::Uuid::new_v4().simple().to_string().parse().expect("hexadecimal digits");
    let id = head.headers.entry(REQUEST_ID).or_insert_with(id).clone();
    if let Some(limit) = limit {
        let timeout = format!("{}m", limit.as_millis().min(99_999_999));
        head.headers.insert("grpc-timeout", timeout.parse().expect("digits and a letter"));
    }
    let end = Instant::now() + limit.unwrap_or(Duration::from_secs(365 * 24 * 3600));
    let mut attempt = 0;
    loop {
        let request = Request::from_parts(head.clone(), Body::new(Full::new(body.clone())));
        let begun = timeout_at(end, begin(channel.clone(), request, id.clone())).await;
        let failure = match begun.unwrap_or_else(|_| Err(TimeoutExpired(()).into())) {
            Ok(answer) => return Ok(answer),
            Err(cause) => status(cause, &id),
        };
        let error = Error::from(failure.clone());
        let jitter = 1.0 + f32::from(uuid::Uuid::new_v4().as_bytes()[0]) / 256.0;
        let pause = error.retry_after.unwrap_or(Duration::from_millis(100 << attempt).mul_f32(jitter));
        let is_long = pause > Duration::from_secs(30) || Instant::now() + pause > end;
        let is_read = READS.iter().any(|read| head.uri.path().contains(read)) && failure.code() == Code::Unavailable;
        if attempt >= retries || !(is_read || error.is_refused) || is_long {
            return Err(failure);
        }
        sleep(pause).await;
        attempt += 1;
    }
}

/// Begins a call and waits for the first part of its response, to fail here if the call fails before its first message.
async fn begin(mut channel: Channel, request: Request, id: HeaderValue) -> Result<Response, Failure> {
    let (head, mut rest) = channel.ready().await?.call(request).await?.into_parts();
    let first = rest.frame().await.transpose()?;
    let end = first.as_ref().and_then(|frame| frame.trailers_ref()).unwrap_or(&head.headers);
    if let Some(status) = Status::from_header_map(end).filter(|status| status.code() != Code::Ok) {
        return Err(status.into());
    }
    let frames = tokio_stream::iter(first.map(Ok)).chain(BodyStream::new(rest));
    let frames = frames.map(move |frame| frame.map_err(|cause| status(cause.into(), &id)));
    Ok(Response::from_parts(head, Body::new(StreamBody::new(frames))))
}

/// Returns the status of a failed call, with its id.
fn status(cause: Failure, id: &HeaderValue) -> Status {
    let late = Status::deadline_exceeded("the call's own deadline passed before the response; give it more time");
    let mut causes = successors(Some(&*cause as &dyn error::Error), |cause| cause.source());
    let mut status = if causes.any(|cause| cause.is::<TimeoutExpired>()) { late } else { Status::from_error(cause) };
    status.metadata_mut().insert(REQUEST_ID, MetadataValue::try_from(id.as_bytes()).expect("a header"));
    status
}

/// A failed call. Its status has the code and the message.
#[derive(Debug)]
pub struct Error {
    pub status: Box<Status>,
    /// Reason, which documents the keys of `metadata`. `Unspecified` where it is newer than this client.
    pub reason: ErrorReason,
    /// What varies in the message, by name.
    pub metadata: HashMap<String, String>,
    /// Path of the wrong field, or an empty text.
    pub field: String,
    /// Id by which the operator finds the call.
    pub request_id: String,
    /// Time to wait before another attempt. None where the gateway does not state it.
    pub retry_after: Option<Duration>,
    /// Whether a later attempt may succeed.
    pub retryable: bool,
    is_refused: bool,
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == "umg");
        let reason = match (info, status.code()) {
            (Some(info), _) => ErrorReason::from_str_name(&format!("ERROR_REASON_{}", info.reason)).unwrap_or_default(),
            (None, Code::Unavailable) => ErrorReason::Unavailable,
            (None, Code::DeadlineExceeded) => ErrorReason::DeadlineExceeded,
            (None, Code::OutOfRange | Code::ResourceExhausted) => ErrorReason::BodyTooLarge,
            (None, Code::Cancelled) => ErrorReason::Cancelled,
            (None, Code::Unimplemented) => ErrorReason::NotImplemented,
            (None, _) => ErrorReason::Unspecified,
        };
        let is_limited = matches!(reason, ErrorReason::RateLimited | ErrorReason::UpstreamRateLimited);
        let is_absent = matches!(reason, ErrorReason::Unavailable | ErrorReason::UpstreamUnreachable);
        let is_slow = status.code() == Code::Unavailable || reason == ErrorReason::UpstreamTimeout;
        let mut causes = successors(error::Error::source(&status), |cause| cause.source());
        let metadata = info.map(|info| info.metadata.clone()).unwrap_or_default();
        let sent = status.metadata().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        Self {
            reason,
            field: metadata.get("field").cloned().unwrap_or_default(),
            metadata,
            request_id: details.request_info().map(|info| info.request_id.as_str()).or(sent).unwrap_or_default().into(),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            retryable: is_limited || is_slow,
            is_refused: info.is_some() && (is_limited || is_absent) || causes.any(|cause| cause.is::<ConnectError>()),
            status: Box::new(status),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {} (request id {})", self.reason.as_str_name(), self.status.message(), self.request_id)
    }
}

impl error::Error for Error {}

impl Client {
    /// Returns the first answer without tool calls, or the twentieth. `tool` runs each call; its error is an output too.
    pub async fn run_tools(
        &mut self,
        mut request: v1::GenerateRequest,
        tool: impl AsyncFn(&v1::ToolCall) -> Result<String, String>,
    ) -> Result<v1::GenerateResponse, Error> {
        let mut count = 0;
        loop {
            let answer = self.generation.generate(request.clone()).await?.into_inner();
            let message = answer.candidates.first().and_then(|first| first.message.clone()).unwrap_or_default();
            let mut results = v1::Message { role: v1::Role::Tool.into(), ..Default::default() };
            for part in &message.parts {
                let Some(Kind::ToolCall(call)) = &part.kind else { continue };
                let (call_id, name, said) = (call.call_id.clone(), call.name.clone(), tool(call).await);
                let is_error = said.is_err().then_some(true);
                let parts = user(&said.unwrap_or_else(|error| error)).parts;
                let result = v1::ToolResult { call_id, name, parts, is_error, ..Default::default() };
                results.parts.push(v1::Part { kind: Some(Kind::ToolResult(result)), ..Default::default() });
            }
            count += 1;
            if results.parts.is_empty() || count == 20 {
                return Ok(answer);
            }
            request.messages.extend([message, results]);
            request.tool_choice = None; // a choice that demands a call would never end
        }
    }

    /// Returns the video of a finished task. `progress` is told the bytes so far and the head of the content.
    pub async fn video(&mut self, id: &str, mut progress: impl FnMut(usize, &ContentHead)) -> Result<Content, Error> {
        let request = v1::DownloadVideoRequest { task_id: id.into(), ..Default::default() };
        collect!(self.videos.download_video(request).await?, download_video_response, progress)
    }

    /// Returns a file of the gateway as `video` does: an image, whose address ends in the token.
    pub async fn file(&mut self, token: &str, mut progress: impl FnMut(usize, &ContentHead)) -> Result<Content, Error> {
        let request = v1::DownloadFileRequest { token: token.into(), ..Default::default() };
        collect!(self.files.download_file(request).await?, download_file_response, progress)
    }
}

/// Makes a message of the user.
pub fn user(said: &str) -> v1::Message {
    let kind = Some(Kind::Text(v1::TextPart { text: said.into(), ..Default::default() }));
    let parts = vec![v1::Part { kind, ..Default::default() }];
    v1::Message { role: v1::Role::User.into(), parts, ..Default::default() }
}

/// Returns the text of a response.
pub fn text(answer: &v1::GenerateResponse) -> String {
    let parts = answer.candidates.iter().take(1).flat_map(|first| &first.message).flat_map(|message| &message.parts);
    parts.filter_map(|part| if let Some(Kind::Text(text)) = &part.kind { Some(&*text.text) } else { None }).collect()
}

/// Returns the numbers of a vector.
pub fn floats(embedding: &v1::Embedding) -> Vec<f32> {
    embedding.values.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
