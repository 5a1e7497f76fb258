//! The engine's report (INFO): text in, numbers out.

/// What is used of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Info {
    /// Bytes in use.
    pub memory: u64,
    /// The limit; 0: none.
    pub limit: u64,
    /// Keys evicted since its start.
    pub evicted: u64,
}

/// Parses a report. What is missing is 0.
pub fn parse(text: &str) -> Info {
    let number = |name: &str| {
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines
            .into_iter()
            .find(|(key, _)| *key == name)
            .and_then(|(_, value)| value.trim().parse().ok())
            .unwrap_or(0)
    };
    Info { memory: number("used_memory"), limit: number("maxmemory"), evicted: number("evicted_keys") }
}

impl std::iter::Sum for Info {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            memory: sum.memory.saturating_add(one.memory),
            limit: sum.limit.saturating_add(one.limit),
            evicted: sum.evicted.saturating_add(one.evicted),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_found() {
        let text = "# Memory\r\nused_memory:1048576\r\nused_memory_rss:9\r\nmaxmemory:0\r\n# Stats\r\nevicted_keys:7\r\n";
        let one = Info { memory: 1_048_576, limit: 0, evicted: 7 };
        assert_eq!(parse(text), one);
        assert_eq!([one, one].into_iter().sum::<Info>().evicted, 14);
        assert_eq!(parse("used_memory:-1\nmaxmemory:99999999999999999999"), Info::default());
    }
}
