//! Whether tests may start small machines: the environment variable `EKE_VM`.

use std::path::Path;

use super::error::Result;
use super::kit::{Kit, default_cache};
use super::parts::Missing;

/// What a test may do to get a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// No machine is used.
    pub skip: bool,
    /// Missing parts are fetched.
    pub fetch: bool,
    /// It is an error if there is no machine.
    pub require: bool,
}

/// The kit for a test, depending on `EKE_VM`: `find` (the default) uses parts on this host, `fetch` gets missing parts
/// with apt, `skip` uses none, `require` makes a missing kit an error; `fetch,require` combines both. Without a kit,
/// prints `skipped: REASON` to standard error and returns `None`.
///
/// # Errors
/// Only with `require`: the missing parts, or why they could not be fetched.
pub fn kit_for_tests() -> Result<Option<Kit>> {
    by_policy(Kit::fetch, Kit::find)
}

/// The same with the kernel of another suite of Debian, such as `trixie`.
///
/// # Errors
/// As [`kit_for_tests`].
pub fn kit_for_tests_of(suite: &str) -> Result<Option<Kit>> {
    by_policy(|cache| Kit::fetch_of(suite, cache), |cache| Kit::find(&cache.join(suite)))
}

fn by_policy(
    fetch: impl Fn(&Path) -> Result<Kit>,
    find: impl Fn(&Path) -> std::result::Result<Kit, Missing>,
) -> Result<Option<Kit>> {
    let policy = Policy::of_environment();
    if policy.skip {
        eprintln!("skipped: EKE_VM=skip");
        return Ok(None);
    }
    let cache = default_cache();
    let kit = if policy.fetch { fetch(&cache) } else { find(&cache).map_err(Into::into) };
    match kit {
        Err(error) if !policy.require => {
            eprintln!("skipped: {error}");
            Ok(None)
        }
        kit => kit.map(Some),
    }
}

impl Policy {
    /// By `EKE_VM`: see [`kit_for_tests`].
    pub fn of_environment() -> Self {
        Self::parse(&std::env::var("EKE_VM").unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let has = |word| text.split(',').any(|part| part.trim() == word);
        Self { skip: has("skip"), fetch: has("fetch"), require: has("require") }
    }
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn words_can_be_combined() {
        assert_eq!(Policy::parse(""), Policy::default());
        assert_eq!(Policy::parse("find"), Policy::default());
        assert_eq!(Policy::parse("fetch, require"), Policy { skip: false, fetch: true, require: true });
    }
}
