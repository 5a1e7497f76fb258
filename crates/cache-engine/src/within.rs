//! How long is waited.

use std::time::Duration;

/// How long a connection may take. Asks wait meanwhile, and fail if nobody waits for them any more.
pub const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// The same for a member of a cluster: a connection to the cluster is made of one to each, and a member whose link is cut keeps the others waiting.
pub const CONNECT_MEMBER_WITHIN: Duration = Duration::from_millis(500);

/// How long an answer may take: longer than any reader waits, so that a connection is not given up for one late answer.
pub const ANSWER_WITHIN: Duration = Duration::from_millis(250);

/// How long the answer to a read may take in a cluster with replicas: half of the longest time that a reader waits. Then a replica is asked.
pub const FIRST_WITHIN: Duration = Duration::from_millis(50);
