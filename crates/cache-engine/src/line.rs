//! A connection that is made anew after it broke.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Instant;

use redis::{Cmd, RedisResult, Value};

use crate::connect::{Connection, Connector};
use crate::pause::Pause;

/// See the module.
#[derive(Debug)]
pub struct Line {
    connector: Arc<Connector>,
    connection: Option<Connection>,
    pause: Pause,
}

impl Line {
    /// Not connected yet.
    pub fn new(connector: &Arc<Connector>) -> Self {
        Self { connector: Arc::clone(connector), connection: None, pause: Pause::default() }
    }

    /// Connects, unless it is connected or that was tried just now. `None`: nothing was tried.
    pub fn connect(&mut self) -> Option<RedisResult<()>> {
        let now = Instant::now();
        if self.connection.is_some() || !self.pause.is_over(now) {
            return None;
        }
        self.pause.begin(now, chance());
        Some(self.connector.connect().map(|connection| self.connection = Some(connection)))
    }

    /// Sends these commands and passes each answer on: see [`Connection::query`]. `None`: there is no connection.
    pub fn query(
        &mut self,
        commands: &[Cmd],
        mut answer: impl FnMut(RedisResult<Value>),
    ) -> Option<RedisResult<()>> {
        let connection = self.connection.as_mut()?;
        let pause = &mut self.pause;
        let outcome = connection.query(commands, |given| {
            if given.is_ok() {
                pause.answered();
            }
            answer(given);
        });
        if outcome.is_err() {
            self.drop_connection();
        }
        Some(outcome)
    }

    /// The answers of all masters to a command. `None`: there is no connection.
    pub fn query_all(&mut self, command: &Cmd) -> Option<RedisResult<Vec<Value>>> {
        let answers = self.connection.as_mut()?.query_all(command);
        if answers.is_ok() {
            self.pause.answered();
        } else {
            self.drop_connection();
        }
        Some(answers)
    }

    /// The next attempt makes another one.
    pub fn drop_connection(&mut self) {
        self.connection = None;
    }
}

/// A number from 0 to 1: the standard library seeds its hash tables at random.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
