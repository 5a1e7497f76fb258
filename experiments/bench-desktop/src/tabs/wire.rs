//! The browser's protocol (Chrome DevTools Protocol) over a pair of pipes: JSON objects, each ended by a NUL byte. Pure.
//!
//! Source: `--remote-debugging-pipe`, chromium's `content/browser/devtools/devtools_pipe_handler.cc`.

use serde_json::{Value, json};

/// A message from the browser.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The answer to a request.
    Reply {
        /// The request's id.
        id: u64,
        /// The result, or the browser's error message.
        result: Result<Value, String>,
    },
    /// An event.
    Event {
        /// Its name: `Page.loadEventFired`.
        method: String,
        /// The session of its tab; `None` for the browser itself.
        session: Option<String>,
        /// Its parameters.
        params: Value,
    },
    /// Neither an answer nor an event.
    Foreign,
}

/// The bytes of a request. `session` is the tab's, `None` for the browser itself.
pub fn encode(id: u64, session: Option<&str>, method: &str, params: &Value) -> Vec<u8> {
    let mut request = json!({ "id": id, "method": method, "params": params });
    if let Some(session) = session {
        request["sessionId"] = session.into();
    }
    let mut bytes = request.to_string().into_bytes();
    bytes.push(0);
    bytes
}

/// Decodes one message, given without its NUL.
pub fn decode(bytes: &[u8]) -> Message {
    let Ok(mut value) = serde_json::from_slice::<Value>(bytes) else { return Message::Foreign };
    if let Some(id) = value["id"].as_u64() {
        let error = value["error"]["message"].as_str().map(str::to_owned);
        let result =
            error.map_or_else(|| Ok(value.get_mut("result").map(Value::take).unwrap_or_default()), Err);
        return Message::Reply { id, result };
    }
    let Some(method) = value["method"].as_str().map(str::to_owned) else { return Message::Foreign };
    let session = value["sessionId"].as_str().map(str::to_owned);
    Message::Event { method, session, params: value.get_mut("params").map(Value::take).unwrap_or_default() }
}

/// The bytes received so far.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
    /// The bytes before this index have no NUL.
    searched: usize,
}

impl Inbox {
    /// Appends received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message.
    pub fn next_message(&mut self) -> Option<Message> {
        let Some(at) = self.bytes[self.searched..].iter().position(|b| *b == 0) else {
            self.searched = self.bytes.len();
            return None;
        };
        let end = self.searched + at;
        let message = decode(&self.bytes[..end]);
        self.bytes.drain(..=end);
        self.searched = 0;
        Some(message)
    }
}

/// The target or session of a tab that an event reports as lost (its process ended, or the browser closed it), and the signal if
/// the event has one.
pub fn lost(method: &str, params: &Value) -> Option<(String, Option<i32>)> {
    let named = |key: &str| params[key].as_str().map(str::to_owned);
    match method {
        "Target.targetCrashed" => {
            let code = params["errorCode"].as_i64().and_then(|code| i32::try_from(code).ok());
            Some((named("targetId")?, code))
        }
        "Target.detachedFromTarget" => Some((named("sessionId")?, None)),
        "Target.targetDestroyed" => Some((named("targetId")?, None)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_json_with_a_nul() {
        let bytes = encode(7, Some("S"), "Page.enable", &json!({}));
        let (last, text) = bytes.split_last().unwrap();
        assert_eq!(*last, 0);
        let value: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(value, json!({ "id": 7, "sessionId": "S", "method": "Page.enable", "params": {} }));
        assert!(!String::from_utf8(encode(7, None, "x", &json!({}))).unwrap().contains("sessionId"));
    }

    #[test]
    fn messages_come_out_whole_in_order_however_they_arrive() {
        let text = b"{\"id\":1,\"result\":{\"a\":2}}\0{\"id\":2,\"error\":{\"message\":\"no\"}}\0\
            {\"method\":\"Page.loadEventFired\",\"sessionId\":\"S\",\"params\":{}}\0garbage\0[]\0{\"id\":3";
        let expected = [
            Message::Reply { id: 1, result: Ok(json!({ "a": 2 })) },
            Message::Reply { id: 2, result: Err("no".into()) },
            Message::Event {
                method: "Page.loadEventFired".into(),
                session: Some("S".into()),
                params: json!({}),
            },
            Message::Foreign,
            Message::Foreign,
        ];
        for piece in [1, 3, 1000] {
            let (mut inbox, mut got) = (Inbox::default(), Vec::new());
            for bytes in text.chunks(piece) {
                inbox.push(bytes);
                got.extend(std::iter::from_fn(|| inbox.next_message()));
            }
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn a_lost_tab_is_named() {
        let params = json!({ "targetId": "T", "status": "killed", "errorCode": 9 });
        assert_eq!(lost("Target.targetCrashed", &params), Some(("T".into(), Some(9))));
        assert_eq!(lost("Target.detachedFromTarget", &json!({ "sessionId": "S" })), Some(("S".into(), None)));
        assert_eq!(lost("Target.targetCreated", &params), None);
        assert_eq!(lost("Target.targetCrashed", &json!([])), None);
    }

    proptest::proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes: Vec<u8>, method in ".{0,30}") {
            let mut inbox = Inbox::default();
            inbox.push(&bytes);
            let messages = std::iter::from_fn(|| inbox.next_message()).count();
            assert_eq!(messages, bytes.iter().filter(|b| **b == 0).count());
            let _ = lost(&method, &serde_json::from_slice(&bytes).unwrap_or_default());
        }
    }
}
