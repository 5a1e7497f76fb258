//! Which engine is the master. The library would ask sentinels without any time limit and without a password.

use std::time::Duration;

use redis::{Client, ErrorKind, RedisError, RedisResult};

/// How long a sentinel may take, to connect and to answer: it answers from memory, and others wait to be asked.
const WITHIN: Duration = Duration::from_millis(500);

/// Codes of sentinels that want a password, and of those whose user without one may not ask.
const WANTS_A_PASSWORD: [&str; 2] = ["NOAUTH", "NOPERM"];

/// Asks the sentinels one after the other for the master of this name. `client` makes the client of a sentinel, with the password or without.
///
/// # Errors
/// The last one's.
pub fn master<S>(
    sentinels: impl Iterator<Item = S>,
    name: &str,
    client: impl Fn(&S, bool) -> RedisResult<Client>,
) -> RedisResult<(String, u16)> {
    let mut last = RedisError::from((ErrorKind::InvalidClientConfig, "no sentinel"));
    for sentinel in sentinels {
        let asked = client(&sentinel, false).and_then(|client| ask(&client, name));
        let asked = match asked {
            Err(e) if e.code().is_some_and(|code| WANTS_A_PASSWORD.contains(&code)) => {
                client(&sentinel, true).and_then(|client| ask(&client, name))
            }
            asked => asked,
        };
        match asked {
            Ok(master) => return Ok(master),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn ask(sentinel: &Client, name: &str) -> RedisResult<(String, u16)> {
    let mut connection = sentinel.get_connection_with_timeout(WITHIN)?;
    connection.set_read_timeout(Some(WITHIN))?;
    connection.set_write_timeout(Some(WITHIN))?;
    let mut question = redis::cmd("SENTINEL");
    question.arg("get-master-addr-by-name").arg(name);
    let master: Option<(String, u16)> = question.query(&mut connection)?;
    master.ok_or_else(|| {
        RedisError::from((ErrorKind::InvalidClientConfig, "sentinels know no master of this name"))
    })
}
