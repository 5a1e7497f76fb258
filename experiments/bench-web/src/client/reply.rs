//! The head of a server's reply. Pure.

/// The most headers of a reply.
const HEADERS: usize = 64;

/// The head of a reply, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// The head is not complete yet.
    More,
    /// The head is complete.
    Whole {
        /// The length of the head in bytes.
        head: usize,
        /// The length of the body in bytes.
        body: u64,
    },
    /// The reply is wrong. The text continues a sentence after "got".
    Wrong(String),
}

/// Parses the bytes of a reply received so far.
pub fn head(bytes: &[u8]) -> Head {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(bytes) {
        Ok(httparse::Status::Partial) => Head::More,
        Ok(httparse::Status::Complete(_)) if response.code != Some(200) => {
            let reason = response.reason.unwrap_or_default();
            Head::Wrong(format!("status {} {reason}", response.code.unwrap_or_default()))
        }
        Ok(httparse::Status::Complete(head)) => match length(response.headers) {
            Some(body) => Head::Whole { head, body },
            None => Head::Wrong("a reply without Content-Length".to_owned()),
        },
        Err(e) => Head::Wrong(format!("a reply that is no HTTP: {e}")),
    }
}

fn length(headers: &[httparse::Header]) -> Option<u64> {
    let header = headers.iter().find(|h| h.name.eq_ignore_ascii_case("content-length"))?;
    std::str::from_utf8(header.value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nServer: x\r\ncontent-length: 12\r\n\r\nhello";

    #[test]
    fn a_head_is_complete_or_not_yet() {
        assert_eq!(head(REPLY), Head::Whole { head: REPLY.len() - 5, body: 12 });
        for cut in [0, 5, 40, REPLY.len() - 6] {
            assert_eq!(head(&REPLY[..cut]), Head::More, "{cut}");
        }
    }

    #[test]
    fn wrong_replies_are_described() {
        for (bytes, part) in [
            (&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..], "404 Not Found"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "without Content-Length"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "without Content-Length"),
            (b"SSH-2.0-x\r\n\r\n", "no HTTP"),
        ] {
            let Head::Wrong(why) = head(bytes) else { panic!("{bytes:?}") };
            assert!(why.contains(part), "{why}");
        }
    }
}
