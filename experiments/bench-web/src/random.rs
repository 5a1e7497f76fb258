//! The pseudo-random stream of the content and of the requests.

use eke_statistics::random::Random;

/// The stream of this seed, from its second number on: stored results and cached images were made with it.
pub(crate) fn stream(seed: u64) -> Random {
    let mut stream = Random::new(seed);
    stream.number();
    stream
}
