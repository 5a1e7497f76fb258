//! Decodes and authorizes one line of a client.

use eke_model::snapshot::{Request, Response};

/// The longest request in bytes, without its line end.
pub const LONGEST: usize = 4096;

/// The request in a line without its line end. `is_root` is whether root sent it.
///
/// # Errors
/// The answer for the client: the request is malformed or not permitted.
pub fn decode(line: &[u8], is_root: bool) -> Result<Request, Response> {
    let request = serde_json::from_slice(line).map_err(|e| {
        refused(format!("this is not a request ({e}); send {{\"ask\":\"status\"}}, {{\"ask\":\"watch\"}}, {{\"ask\":\"reload\"}} or {{\"ask\":\"stop\"}}, one line each"))
    })?;
    if may(&request, is_root) { Ok(request) } else { Err(needs_root(&request)) }
}

/// The answer to a line that is too long.
pub fn too_long() -> Response {
    refused(format!("the request has more than {LONGEST} bytes"))
}

/// Everybody may request the state; only root may change something.
fn may(request: &Request, is_root: bool) -> bool {
    match request {
        Request::Status | Request::Watch => true,
        Request::Stop | Request::Reload => is_root,
    }
}

fn needs_root(request: &Request) -> Response {
    let what = match request {
        Request::Stop => "stopping the agent",
        Request::Reload => "reloading the agent's plan and settings",
        Request::Status | Request::Watch => "reading the state",
    };
    Response::Refused { reason: format!("{what} needs root (try with sudo)"), needs_root: true }
}

fn refused(reason: String) -> Response {
    Response::Refused { reason, needs_root: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs_root_for(line: &str, is_root: bool) -> Option<bool> {
        match decode(line.as_bytes(), is_root) {
            Err(Response::Refused { needs_root, .. }) => Some(needs_root),
            _ => None,
        }
    }

    #[test]
    fn anybody_may_ask_and_only_root_may_change() {
        assert_eq!(decode(br#"{"ask":"status"}"#, false), Ok(Request::Status));
        assert_eq!(decode(br#"{"ask":"watch"}"#, false), Ok(Request::Watch));
        assert_eq!(decode(br#"{"ask":"stop"}"#, true), Ok(Request::Stop));
        assert_eq!(decode(br#"{"ask":"reload"}"#, true), Ok(Request::Reload));
        assert_eq!(needs_root_for(r#"{"ask":"stop"}"#, false), Some(true));
        assert_eq!(needs_root_for(r#"{"ask":"reload"}"#, false), Some(true));
    }

    #[test]
    fn a_refusal_names_the_valid_requests() {
        let Err(Response::Refused { reason, needs_root: false }) = decode(b"GET / HTTP/1.1", true) else {
            panic!("understood")
        };
        assert!(reason.contains(r#"{"ask":"status"}"#), "{reason}");
        assert_eq!(needs_root_for(r#"{"ask":"reboot"}"#, true), Some(false));
        assert_eq!(needs_root_for("", true), Some(false));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_request_or_a_refusal_of_one_bounded_line(line in proptest::collection::vec(proptest::num::u8::ANY, 0..LONGEST)) {
            if let Err(answer) = decode(&line, false) {
                let text = serde_json::to_string(&answer).unwrap();
                proptest::prop_assert!(!text.contains('\n') && text.len() < 4 * LONGEST);
            }
        }

        #[test]
        fn only_root_gets_a_change_through(line in r#"\{ ?"ask" ?: ?"(status|stop|reload|[a-z]{0,6})"(, ?"[a-z]{1,5}": ?[0-9]{1,3})?\}"#) {
            proptest::prop_assert!(!matches!(decode(line.as_bytes(), false), Ok(Request::Stop | Request::Reload)));
        }
    }
}
