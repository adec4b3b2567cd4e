//! The error of a failed call.

use std::{collections::HashMap, error, fmt, iter::successors, time::Duration};

use tonic::{Code, ConnectError, Status};
use tonic_types::StatusExt;

use crate::v1::ErrorReason;

pub(crate) const REQUEST_ID: &str = "x-request-id";
/// Reasons after which nothing was executed.
const REFUSALS: [ErrorReason; 4] = [
    ErrorReason::Unavailable,
    ErrorReason::RateLimited,
    ErrorReason::UpstreamRateLimited,
    ErrorReason::UpstreamUnreachable,
];
/// Reasons that pass by themselves, beside those with the code UNAVAILABLE.
const PASSING: [ErrorReason; 3] =
    [ErrorReason::RateLimited, ErrorReason::UpstreamRateLimited, ErrorReason::UpstreamTimeout];

/// A failed call.
#[derive(Debug)]
pub struct Error {
    /// Reason, which documents the keys of `metadata`. `Unspecified` where it is newer than this client.
    pub reason: ErrorReason,
    /// What varies in the message, by name.
    pub metadata: HashMap<String, String>,
    pub message: Box<str>,
    /// Id by which the operator finds the call.
    pub request_id: String,
    /// Time to wait before another attempt. None where the gateway does not state it.
    pub retry_after: Option<Duration>,
    pub status: Box<Status>,
}

impl Error {
    /// Returns the path of the wrong field, or an empty text.
    pub fn field(&self) -> &str {
        self.metadata.get("field").map_or("", String::as_str)
    }

    /// Returns whether a later attempt may succeed.
    pub fn retryable(&self) -> bool {
        self.status.code() == Code::Unavailable || PASSING.contains(&self.reason)
    }

    /// Returns whether the call may be repeated: it only reads, or nothing of it was executed.
    pub(crate) fn repeatable(&self, read: bool) -> bool {
        let mut causes = successors(error::Error::source(&*self.status), |cause| cause.source());
        let refused = !self.status.details().is_empty() && REFUSALS.contains(&self.reason);
        refused || read && self.status.code() == Code::Unavailable || causes.any(|cause| cause.is::<ConnectError>())
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let info = details.error_info().filter(|info| info.domain == "umg");
        let own = status.message().to_owned();
        let (reason, message) = match (info, status.code()) {
            (Some(info), _) => (named(&info.reason), own),
            (None, Code::Unavailable) => {
                (ErrorReason::Unavailable, format!("the connection to the gateway failed: {own}"))
            }
            (None, Code::DeadlineExceeded) => {
                (ErrorReason::DeadlineExceeded, "the call took longer than its own deadline".into())
            }
            (None, Code::OutOfRange) => {
                (ErrorReason::BodyTooLarge, "the answer is larger than this client accepts".into())
            }
            (None, Code::Cancelled) => (ErrorReason::Cancelled, own),
            (None, Code::Unimplemented) => (ErrorReason::NotImplemented, own),
            (None, _) => (ErrorReason::Unspecified, own),
        };
        let sent = status.metadata().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let known = details.request_info().map(|info| info.request_id.as_str());
        Self {
            reason,
            metadata: info.map(|info| info.metadata.clone()).unwrap_or_default(),
            message: message.into(),
            request_id: known.or(sent).unwrap_or_default().to_owned(),
            retry_after: details.retry_info().and_then(|info| info.retry_delay),
            status: Box::new(status),
        }
    }
}

fn named(reason: &str) -> ErrorReason {
    ErrorReason::from_str_name(&format!("ERROR_REASON_{reason}")).unwrap_or_default()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let reason = self.reason.as_str_name().trim_start_matches("ERROR_REASON_");
        write!(f, "{reason}: {} (request id {})", self.message, self.request_id)
    }
}

impl error::Error for Error {}
