//! Client of the Unified Model Gateway: [`connect`] makes a [`Client`], which has a generated client for each service.

mod calls;
mod failure;

use std::{error, time::Duration};

use tokio_stream::{Stream, StreamExt};
use tonic::{Status, transport::Endpoint};
use v1::{generate_event, part};

pub use calls::Calls;
pub use failure::Error;

/// Messages and clients of the schema, as generated.
#[allow(clippy::all, rustdoc::all)]
pub mod v1 {
    tonic::include_proto!("umg.v1");
}

/// The schema as a serialized `FileDescriptorSet`, for reflection.
pub const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schema.bin"));
/// Size of the largest message that is received. An answer to [`v1::EmbedRequest`] can exceed tonic's own 4 MiB.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
/// Number of answers after which [`Client::run_tools`] runs no more tools.
pub const MAX_TOOL_ROUNDS: usize = 20;

macro_rules! services {
    ($($field:ident: $module:ident, $name:ident;)*) => {
        /// Clients of the gateway's services. Calls take `&mut`: each task has a clone of its own, which is cheap.
        #[derive(Clone)]
        pub struct Client {
            $(#[allow(missing_docs)] pub $field: v1::$module::$name<Calls>,)*
            /// The connection, for a client with other options: `Client::from(Calls { retries: 0, ..client.calls })`.
            pub calls: Calls,
        }

        impl From<Calls> for Client {
            fn from(calls: Calls) -> Self {
                $(let $field = v1::$module::$name::new(calls.clone()).max_decoding_message_size(MAX_ANSWER_BYTES);)*
                Self { $($field,)* calls }
            }
        }
    };
}

services! {
    admin: admin_service_client, AdminServiceClient;
    embeddings: embedding_service_client, EmbeddingServiceClient;
    files: file_service_client, FileServiceClient;
    generation: generation_service_client, GenerationServiceClient;
    images: image_service_client, ImageServiceClient;
    models: model_service_client, ModelServiceClient;
    rerank: rerank_service_client, RerankServiceClient;
    videos: video_service_client, VideoServiceClient;
}

/// The bytes of an image or a video.
#[derive(Default)]
pub struct Content {
    pub data: Vec<u8>,
    pub mime_type: String,
}

/// Collects the content of a download. The responses of both downloads have the same form, but not the same type.
macro_rules! collect {
    ($answers:expr, $module:ident, $progress:ident) => {{
        let (mut answers, mut content, mut total) = ($answers.into_inner(), Content::default(), None);
        while let Some(answer) = answers.message().await? {
            match answer.kind {
                Some(v1::$module::Kind::Head(head)) => (total, content.mime_type) = (head.length_bytes, head.mime_type),
                Some(v1::$module::Kind::Chunk(chunk)) => {
                    content.data.extend_from_slice(&chunk);
                    $progress(content.data.len(), total);
                }
                None => {}
            }
        }
        Ok(content)
    }};
}

/// Makes a client of the gateway at `http://HOST:PORT`, or with TLS at `https://HOST:PORT`. The first call connects.
pub fn connect(url: &str, key: &str) -> Result<Client, Box<dyn error::Error + Send + Sync>> {
    let endpoint = Endpoint::from_shared(url.to_owned())?.connect_timeout(Duration::from_secs(10));
    #[cfg(feature = "tls")]
    let endpoint = if url.starts_with("https:") {
        endpoint.tls_config(tonic::transport::ClientTlsConfig::new().with_enabled_roots())?
    } else {
        endpoint
    };
    Ok(Calls::new(endpoint.connect_lazy(), key)?.into())
}

impl Client {
    /// Streams the answer of a model to one text, under `instructions` unless they are empty. Dropping the stream
    /// cancels the call.
    pub async fn chat(
        &mut self,
        model: &str,
        said: &str,
        instructions: &str,
    ) -> Result<impl Stream<Item = Result<String, Error>> + use<>, Error> {
        let mut request = v1::GenerateRequest { model: model.into(), messages: vec![user(said)], ..Default::default() };
        if !instructions.is_empty() {
            request.instructions.push(text_part(instructions));
        }
        let answers = self.generation.stream_generate(v1::StreamGenerateRequest { request: Some(request) }).await?;
        let delta = |event: v1::GenerateEvent| match event.kind {
            Some(generate_event::Kind::TextDelta(delta)) => Some(delta),
            _ => None,
        };
        Ok(answers.into_inner().map(move |answer| Ok(answer?.events.into_iter().filter_map(delta).collect())))
    }

    /// Generates until the model calls no more tools. `tool` runs each call; the model is told its error too.
    pub async fn run_tools(
        &mut self,
        mut request: v1::GenerateRequest,
        tool: impl AsyncFn(&v1::ToolCall) -> Result<String, String>,
    ) -> Result<v1::GenerateResponse, Error> {
        let mut rounds = 0;
        loop {
            let answer = self.generation.generate(request.clone()).await?.into_inner();
            let message = answer.candidates.first().and_then(|first| first.message.clone()).unwrap_or_default();
            let mut parts = Vec::new();
            for part in &message.parts {
                let Some(part::Kind::ToolCall(call)) = &part.kind else { continue };
                let said = tool(call).await;
                let mut result =
                    v1::ToolResult { call_id: call.call_id.clone(), name: call.name.clone(), ..Default::default() };
                result.is_error = said.is_err().then_some(true);
                result.parts = vec![text_part(&said.unwrap_or_else(|error| error))];
                parts.push(v1::Part { kind: Some(part::Kind::ToolResult(result)), ..Default::default() });
            }
            rounds += 1;
            if parts.is_empty() || rounds == MAX_TOOL_ROUNDS {
                return Ok(answer);
            }
            request
                .messages
                .extend([message, v1::Message { role: v1::Role::Tool.into(), parts, ..Default::default() }]);
            request.tool_choice = None; // a choice that demands a call would never end
        }
    }

    /// Submits a video and waits for its end. `progress` is called with each state of the task.
    pub async fn make_video(
        &mut self,
        request: v1::CreateVideoTaskRequest,
        mut progress: impl FnMut(&v1::VideoTask),
    ) -> Result<v1::VideoTask, Error> {
        let mut task = self.videos.create_video_task(request).await?.into_inner().task.unwrap_or_default();
        let request = v1::WatchVideoTaskRequest { task_id: task.task_id.clone() };
        let mut states = self.videos.watch_video_task(request).await?.into_inner();
        while let Some(state) = states.message().await? {
            task = state.task.unwrap_or(task);
            progress(&task);
        }
        Ok(task)
    }

    /// Returns the video of a finished task. `progress` is called with the received and the total number of bytes.
    pub async fn video(
        &mut self,
        task_id: &str,
        mut progress: impl FnMut(usize, Option<i64>),
    ) -> Result<Content, Error> {
        let request = v1::DownloadVideoRequest { task_id: task_id.into(), ..Default::default() };
        collect!(self.videos.download_video(request).await?, download_video_response, progress)
    }

    /// Returns the bytes of an image, those in it or those behind the gateway's link. `progress` as in `video`.
    pub async fn image(
        &mut self,
        image: &v1::Image,
        mut progress: impl FnMut(usize, Option<i64>),
    ) -> Result<Content, Error> {
        let token = match &image.content {
            Some(v1::image::Content::Data(data)) => {
                progress(data.len(), Some(data.len() as i64));
                return Ok(Content { data: data.to_vec(), mime_type: image.mime_type.clone() });
            }
            Some(v1::image::Content::Url(url)) if url.contains("/files/") => url.rsplit('/').next().unwrap_or_default(),
            _ => {
                return Err(
                    Status::invalid_argument("the image is at an address of its provider; get it by HTTP").into()
                );
            }
        };
        let request = v1::DownloadFileRequest { token: token.into(), ..Default::default() };
        collect!(self.files.download_file(request).await?, download_file_response, progress)
    }
}

fn text_part(text: &str) -> v1::Part {
    let text = v1::TextPart { text: text.into(), ..Default::default() };
    v1::Part { kind: Some(part::Kind::Text(text)), ..Default::default() }
}

/// Makes a message of the user.
pub fn user(said: &str) -> v1::Message {
    v1::Message { role: v1::Role::User.into(), parts: vec![text_part(said)], ..Default::default() }
}

/// Returns the text of an answer.
pub fn text(answer: &v1::GenerateResponse) -> String {
    let message = answer.candidates.first().and_then(|first| first.message.as_ref());
    let text =
        |part: &v1::Part| if let Some(part::Kind::Text(text)) = &part.kind { Some(text.text.clone()) } else { None };
    message.into_iter().flat_map(|message| &message.parts).filter_map(text).collect()
}

/// Returns the numbers of a vector.
pub fn floats(embedding: &v1::Embedding) -> Vec<f32> {
    embedding.values.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}
