//! Arms that are measured twice (A/A): their difference is noise.

/// What ends the name of the second of two equal arms. Experiments write the first; some stored results have the second.
const ENDINGS: [&str; 2] = [", again", " again"];

/// The name of the arm that is `$first` measured again, as every experiment writes it.
#[macro_export]
macro_rules! again {
    ($first:literal) => {
        concat!($first, ", again")
    };
}

/// The arm that the arm `name` repeats. `None` if it repeats none.
pub fn first_of(name: &str) -> Option<&str> {
    ENDINGS.iter().find_map(|ending| name.strip_suffix(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_that_is_measured_again_is_known_by_its_name() {
        assert_eq!(first_of(again!("eke, shared")), Some("eke, shared"));
        assert_eq!(first_of("files, again"), Some("files"));
        assert_eq!(first_of("eke again"), Some("eke"));
        assert_eq!(first_of("eke, --no-watch"), None);
        assert_eq!(first_of("again"), None);
    }
}
