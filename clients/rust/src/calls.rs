//! The connection of a client.

use std::{error, future::Future, future::poll_fn, iter::successors, pin::Pin, task, time::Duration};

use http::{HeaderValue, header::InvalidHeaderValue};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_stream::StreamExt;
use tonic::{Code, Status, TimeoutExpired, body::Body, codegen::Service, metadata::MetadataValue, transport::Channel};

use crate::failure::{Error, REQUEST_ID};

const READS: [&str; 5] = ["/Get", "/List", "/Count", "/Watch", "/Download"];
const MAX_PAUSE: Duration = Duration::from_secs(30);
type Cause = Box<dyn error::Error + Send + Sync>;

/// The connection of a client, which gives each call the key, a request id, a deadline and retries.
#[derive(Clone)]
pub struct Calls {
    channel: Channel,
    authorization: Option<HeaderValue>,
    /// Time after which a call fails. None: never.
    pub deadline: Option<Duration>,
    /// Number of further attempts at a call that failed before its first message. Repeated are only reads, and calls of
    /// which nothing was executed, after the time that the failure's `RetryInfo` states.
    pub retries: u32,
}

impl Calls {
    /// Makes the connection, without a deadline and with two retries. Without a key, calls have no credentials.
    pub fn new(channel: Channel, key: &str) -> Result<Self, InvalidHeaderValue> {
        let authorization = if key.is_empty() { None } else { Some(format!("Bearer {key}").parse()?) };
        Ok(Self { channel, authorization, deadline: None, retries: 2 })
    }

    async fn send(self, request: http::Request<Body>) -> Result<http::Response<Body>, Status> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let id = || uuid::Uuid::new_v4().simple().to_string().parse().expect("hexadecimal digits");
        let id = head.headers.entry(REQUEST_ID).or_insert_with(id).clone();
        if let Some(key) = &self.authorization {
            head.headers.entry("authorization").or_insert(key.clone());
        }
        if let Some(deadline) = self.deadline {
            let limit = format!("{}m", deadline.as_millis().min(99_999_999));
            head.headers.insert("grpc-timeout", limit.parse().expect("digits and a letter"));
        }
        let end = Instant::now() + self.deadline.unwrap_or(Duration::from_secs(365 * 24 * 3600));
        let read = READS.iter().any(|read| head.uri.path().contains(read));
        let mut attempt = 0;
        loop {
            let request = http::Request::from_parts(head.clone(), Body::new(Full::new(body.clone())));
            let sent = timeout_at(end, begin(self.channel.clone(), request, id.clone()));
            let failure = match sent.await.unwrap_or_else(|_| Err(TimeoutExpired(()).into())) {
                Ok(answer) => return Ok(answer),
                Err(cause) => status(cause, &id),
            };
            let error = Error::from(failure.clone());
            let pause = error.retry_after.unwrap_or_else(|| backoff(attempt));
            if attempt >= self.retries || !error.repeatable(read) || pause > MAX_PAUSE || Instant::now() + pause > end {
                return Err(failure);
            }
            sleep(pause).await;
            attempt += 1;
        }
    }
}

/// Returns 0.2 s, doubled with each attempt, less up to a half of it.
fn backoff(attempt: u32) -> Duration {
    let share = uuid::Uuid::new_v4().as_u128() as u8; // a random number, without a library for them
    Duration::from_millis(200 << attempt).mul_f32(1.0 - f32::from(share) / 512.0)
}

/// Begins a call and waits for the first part of its answer, to fail here if the call fails before its first message.
async fn begin(
    mut channel: Channel,
    request: http::Request<Body>,
    id: HeaderValue,
) -> Result<http::Response<Body>, Cause> {
    poll_fn(|context| channel.poll_ready(context)).await?;
    let (head, mut rest) = channel.call(request).await?.into_parts();
    let first = rest.frame().await.transpose()?;
    let end = first.as_ref().and_then(|frame| frame.trailers_ref()).unwrap_or(&head.headers);
    if let Some(status) = Status::from_header_map(end).filter(|status| status.code() != Code::Ok) {
        return Err(status.into());
    }
    let frames = tokio_stream::iter(first.map(Ok)).chain(BodyStream::new(rest));
    let frames = frames.map(move |frame| frame.map_err(|cause| status(cause.into(), &id)));
    Ok(http::Response::from_parts(head, Body::new(StreamBody::new(frames))))
}

/// Returns the status of a failed call, with its id.
fn status(cause: Cause, id: &HeaderValue) -> Status {
    let mut causes = successors(Some(&*cause as &dyn error::Error), |cause| cause.source());
    let late = causes.any(|cause| cause.is::<TimeoutExpired>());
    let mut status = if late { Status::deadline_exceeded("timeout expired") } else { Status::from_error(cause) };
    if let Ok(id) = MetadataValue::try_from(id.as_bytes()) {
        status.metadata_mut().insert(REQUEST_ID, id);
    }
    status
}

impl Service<http::Request<Body>> for Calls {
    type Response = http::Response<Body>;
    type Error = Status;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Status>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context) -> task::Poll<Result<(), Status>> {
        task::Poll::Ready(Ok(())) // each attempt waits for the channel itself
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
