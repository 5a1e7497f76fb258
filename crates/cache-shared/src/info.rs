//! The engine's report (INFO): text in, numbers out.

/// What is used of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Info {
    /// Bytes in use.
    pub memory: u64,
    /// The limit; 0: none, or it is not known.
    pub limit: u64,
    /// Keys evicted since its start.
    pub evicted: u64,
    /// It has no limit: it grows until its machine has no memory.
    pub is_unlimited: bool,
    /// It has a limit and evicts nothing: it refuses blocks when it is full.
    pub keeps_all: bool,
}

/// Parses a report. What is missing is 0, or not so.
pub fn parse(text: &str) -> Info {
    let value =
        |name: &str| text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| *key == name);
    let number = |name: &str| value(name).and_then(|(_, value)| value.trim().parse::<u64>().ok());
    let limit = number("maxmemory");
    let keeps = value("maxmemory_policy").is_some_and(|(_, policy)| policy.trim() == "noeviction");
    Info {
        memory: number("used_memory").unwrap_or(0),
        limit: limit.unwrap_or(0),
        evicted: number("evicted_keys").unwrap_or(0),
        is_unlimited: limit == Some(0),
        keeps_all: keeps && limit.is_some_and(|limit| limit > 0),
    }
}

impl std::iter::Sum for Info {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            memory: sum.memory.saturating_add(one.memory),
            limit: sum.limit.saturating_add(one.limit),
            evicted: sum.evicted.saturating_add(one.evicted),
            is_unlimited: sum.is_unlimited || one.is_unlimited,
            keeps_all: sum.keeps_all || one.keeps_all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_found() {
        let text = "# Memory\r\nused_memory:1048576\r\nused_memory_rss:9\r\nmaxmemory:0\r\n# Stats\r\nevicted_keys:7\r\n";
        let one = Info { memory: 1_048_576, evicted: 7, is_unlimited: true, ..Info::default() };
        assert_eq!(parse(text), one);
        assert_eq!([one, one].into_iter().sum::<Info>().evicted, 14);
        assert_eq!(parse("used_memory:-1\nmaxmemory:99999999999999999999"), Info::default());
    }

    /// Without a report (ACL) nothing is said of the engine.
    #[test]
    fn one_node_without_a_limit_or_eviction_is_seen_among_others() {
        let of = |text: &str| {
            let info = parse(text);
            (info.is_unlimited, info.keeps_all)
        };
        assert_eq!(of("maxmemory:0\r\nmaxmemory_policy:noeviction\r\n"), (true, false));
        assert_eq!(of("maxmemory:9\r\nmaxmemory_policy:noeviction\r\n"), (false, true));
        assert_eq!(of("maxmemory:9\r\nmaxmemory_policy:allkeys-lru\r\n"), (false, false));
        assert_eq!([of(""), of("maxmemory_policy:noeviction")], [(false, false); 2]);
        let all = ["maxmemory:9", "maxmemory:0", "maxmemory:9\nmaxmemory_policy:noeviction"];
        let sum: Info = all.map(parse).into_iter().sum();
        assert!(sum.is_unlimited && sum.keeps_all && sum.limit == 18);
    }
}
