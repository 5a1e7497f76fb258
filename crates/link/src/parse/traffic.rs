//! The traffic that `ssh -v` prints at its end.

/// Bytes of both directions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// On the link: `Transferred: sent N, received N bytes` (clientloop.c).
    pub wire_bytes: u64,
    /// Before compression and after, if it was on: `compress outgoing: raw data N, compressed N` and `compress incoming: ...` (packet.c).
    pub compressed: Option<(u64, u64)>,
}

/// Reads standard error of `ssh -v`; `None`: it was killed before its end.
pub fn traffic(errors: &str) -> Option<Traffic> {
    let lines = || errors.lines().map(|line| line.trim_start_matches("debug1: ").trim_end());
    let sent = lines().find_map(|line| line.strip_prefix("Transferred: sent "))?;
    let (sent, rest) = sent.split_once(", received ")?;
    let received = rest.split_once(" bytes")?.0;
    let wire_bytes = sent.parse::<u64>().ok()?.saturating_add(received.parse().ok()?);
    let both = ["compress outgoing: raw data ", "compress incoming: raw data "]
        .map(|start| lines().find_map(|line| line.strip_prefix(start)).and_then(pair));
    let compressed = match both {
        [None, None] => None,
        [out, back] => {
            let (out, back) = (out.unwrap_or_default(), back.unwrap_or_default());
            Some((out.0.saturating_add(back.0), out.1.saturating_add(back.1)))
        }
    };
    Some(Traffic { wire_bytes, compressed })
}

/// `68, compressed 61, factor 0.90`
fn pair(text: &str) -> Option<(u64, u64)> {
    let (raw, rest) = text.split_once(", compressed ")?;
    Some((raw.parse().ok()?, rest.split(',').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_openssh_9_2() {
        let errors = "debug1: client_input_channel_req: channel 0 rtype exit-status reply 0\r
debug1: channel 0: free: client-session, nchannels 1\r
Transferred: sent 2704, received 3244 bytes, in 0.1 seconds\r
Bytes per second: sent 49893.4, received 59857.3\r
debug1: Exit status 0\r
debug1: compress outgoing: raw data 123, compressed 105, factor 0.85\r
debug1: compress incoming: raw data 1000, compressed 95, factor 0.10\r
";
        assert_eq!(traffic(errors), Some(Traffic { wire_bytes: 5948, compressed: Some((1123, 200)) }));
        let plain = errors.replace("compress ", "x ");
        assert_eq!(traffic(&plain), Some(Traffic { wire_bytes: 5948, compressed: None }));
        assert_eq!(traffic("Killed by signal 15.\r\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_words_are_read(rest: String) {
            let _ = traffic(&format!("Transferred: sent {rest}\ncompress outgoing: raw data {rest}"));
        }
    }
}
