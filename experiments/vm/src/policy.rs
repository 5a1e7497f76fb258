//! Whether tests may start small machines: the environment's `EKE_VM`.

use super::error::Result;
use super::kit::{Kit, default_cache};

/// What a test does about the small machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Policy {
    skip: bool,
    fetch: bool,
    require: bool,
}

/// The kit for a test, as `EKE_VM` has it: `find` (the default) takes what is on this host, `fetch` gets with apt what is
/// missing, `skip` takes none, `require` makes an absent kit an error; `fetch,require` is both. Where there is none, prints
/// `skipped: REASON` to standard error and gives `None`.
///
/// # Errors
/// Only with `require`: what is missing, or why it could not be fetched.
pub fn kit_for_tests() -> Result<Option<Kit>> {
    let policy = Policy::parse(&std::env::var("EKE_VM").unwrap_or_default());
    if policy.skip {
        eprintln!("skipped: EKE_VM=skip");
        return Ok(None);
    }
    let cache = default_cache();
    let kit = if policy.fetch { Kit::fetch(&cache) } else { Kit::find(&cache).map_err(Into::into) };
    match kit {
        Err(error) if !policy.require => {
            eprintln!("skipped: {error}");
            Ok(None)
        }
        kit => kit.map(Some),
    }
}

impl Policy {
    fn parse(text: &str) -> Self {
        let has = |word| text.split(',').any(|part| part.trim() == word);
        Self { skip: has("skip"), fetch: has("fetch"), require: has("require") }
    }
}

#[cfg(test)]
mod tests {
    use super::Policy;

    #[test]
    fn words_can_be_put_together() {
        assert_eq!(Policy::parse(""), Policy::default());
        assert_eq!(Policy::parse("find"), Policy::default());
        assert_eq!(Policy::parse("fetch, require"), Policy { skip: false, fetch: true, require: true });
    }
}
