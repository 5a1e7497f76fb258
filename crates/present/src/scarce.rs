//! Pressure-stall information (Documentation/accounting/psi.rst, Linux 4.20) in words.

use eke_model::sample::Pressure;
use eke_model::snapshot::Snapshot;
use eke_model::text::one_line;

/// How much tasks wait. The bounds are eke's own: users do not notice less than 1 % of the time. If some task waits 40 % of the time, or
/// all wait 10 % of it for memory, the machine stutters (systemd-oomd kills at 60 % of `full`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The kernel does not count it.
    Unknown,
    /// Some task waits less than 1 % of the time.
    Calm,
    /// Less than 10 %.
    Little,
    /// Less than 40 %.
    Much,
    /// More, or all tasks wait 10 % of the time or more.
    Badly,
}

impl Level {
    /// By the last ten seconds.
    pub fn of(pressure: Option<&Pressure>) -> Self {
        let Some(p) = pressure else { return Self::Unknown };
        match (p.some_avg10, p.full_avg10) {
            (some, full) if some >= 40.0 || full >= 10.0 => Self::Badly,
            (some, _) if some >= 10.0 => Self::Much,
            (some, _) if some >= 1.0 => Self::Little,
            _ => Self::Calm,
        }
    }

    /// The level in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "not counted",
            Self::Calm => "enough",
            Self::Little => "a little",
            Self::Much => "much",
            Self::Badly => "badly",
        }
    }

    /// True if it is a shortage.
    pub fn is_short(self) -> bool {
        self >= Self::Little
    }
}

/// One resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resource {
    /// The resource's name.
    pub name: &'static str,
    /// How much.
    pub level: Level,
    /// The kernel's numbers; `None` if it does not count them.
    pub pressure: Option<Pressure>,
}

/// Memory, disks (reads and writes), CPU.
pub fn resources(s: &Snapshot) -> [Resource; 3] {
    let m = &s.machine;
    let memory = Level::of(m.memory_pressure.as_ref());
    [
        Resource { name: "memory", level: memory, pressure: m.memory_pressure },
        Resource { name: "disks", level: by_some(m.io_pressure), pressure: m.io_pressure },
        Resource { name: "CPU", level: by_some(m.cpu_pressure), pressure: m.cpu_pressure },
    ]
}

/// The level by `some` alone. `full` counts all tasks that are not idle: on a quiet machine one reader is all of them. For the CPU of the
/// whole machine it is undefined (psi.rst; the line is zero since Linux 5.13, and was absent before).
fn by_some(pressure: Option<Pressure>) -> Level {
    Level::of(pressure.map(|p| Pressure { full_avg10: 0.0, ..p }).as_ref())
}

/// Less than this share of RAM available is a shortage, even if no task waits yet.
const LITTLE_AVAILABLE: f64 = 0.10;

/// The scarce resources with their levels, the worst first; or "nothing now".
pub fn sentence(s: &Snapshot) -> String {
    let short = scarce(s);
    let mut parts: Vec<String> = short.iter().map(|r| format!("{} ({})", r.name, how(s, r))).collect();
    if is_nearly_full(s) && !short.iter().any(|r| r.name == "memory") {
        parts.insert(0, format!("memory ({} left)", s.model.available));
    }
    if parts.is_empty() { "nothing now".into() } else { parts.join(", ") }
}

/// The level. If tasks wait although the machine has plenty, a group's limit is the cause, or a shortage that is over: the kernel's average covers
/// 10 s, and pages that were evicted come back.
fn how(s: &Snapshot, r: &Resource) -> String {
    let (level, available) = (r.level.word(), s.model.available);
    match s.group_at_limit.as_deref() {
        _ if r.name != "memory" || !s.waits_with_plenty() => level.to_owned(),
        Some(group) => {
            format!("{level}, at the limit of the group {}: {available} are available", one_line(group))
        }
        None => format!("{level} in the last 10 s: {available} are available again"),
    }
}

/// True if tasks wait at their group's limit while the machine has plenty.
pub fn is_in_a_group(s: &Snapshot) -> bool {
    s.waits_with_plenty() && s.group_at_limit.is_some()
}

/// The scarce resources without their levels.
pub fn names(s: &Snapshot) -> String {
    let mut names: Vec<&str> = scarce(s).iter().map(|r| r.name).collect();
    if is_nearly_full(s) && !names.contains(&"memory") {
        names.insert(0, "memory");
    }
    if names.is_empty() { "nothing now".into() } else { names.join(", ") }
}

fn scarce(s: &Snapshot) -> Vec<Resource> {
    let mut short: Vec<Resource> = resources(s).into_iter().filter(|r| r.level.is_short()).collect();
    short.sort_by_key(|r| std::cmp::Reverse(r.level));
    short
}

fn is_nearly_full(s: &Snapshot) -> bool {
    s.model.ram.0 > 0 && (s.model.available.0 as f64) < LITTLE_AVAILABLE * s.model.ram.0 as f64
}

#[cfg(test)]
mod tests {
    use eke_model::model::Model;
    use eke_model::snapshot::Machine;
    use eke_model::units::Bytes;

    use super::*;

    fn waits(some_avg10: f64, full_avg10: f64) -> Option<Pressure> {
        Some(Pressure { some_avg10, full_avg10, ..Pressure::default() })
    }

    fn machine(memory: Option<Pressure>, io: Option<Pressure>, cpu: Option<Pressure>) -> Snapshot {
        let model = Model { ram: Bytes::mib(1000), available: Bytes::mib(400), ..Model::default() };
        let machine =
            Machine { memory_pressure: memory, io_pressure: io, cpu_pressure: cpu, ..Machine::default() };
        Snapshot { model, machine, ..Snapshot::default() }
    }

    #[test]
    fn each_level_begins_where_it_says() {
        let level = |some, full| Level::of(waits(some, full).as_ref());
        assert_eq!(
            [0.0, 0.99, 1.0, 9.9].map(|s| level(s, 0.0)),
            [Level::Calm, Level::Calm, Level::Little, Level::Little]
        );
        assert_eq!([10.0, 39.9, 40.0].map(|s| level(s, 0.0)), [Level::Much, Level::Much, Level::Badly]);
        assert_eq!(level(12.0, 10.0), Level::Badly);
        assert_eq!(Level::of(None), Level::Unknown);
    }

    #[test]
    fn the_worst_is_said_first_and_nothing_is_said_to_be_nothing() {
        let calm = waits(0.2, 0.0);
        assert_eq!(sentence(&machine(calm, calm, None)), "nothing now");
        assert_eq!(
            sentence(&machine(waits(3.0, 0.0), waits(50.0, 2.0), calm)),
            "disks (badly), memory (a little)"
        );
    }

    #[test]
    fn all_tasks_waiting_counts_for_memory_alone() {
        assert_eq!(
            resources(&machine(waits(12.0, 11.0), waits(12.0, 11.0), None)).map(|r| r.level),
            [Level::Badly, Level::Much, Level::Unknown]
        );
        assert_eq!(resources(&machine(None, None, waits(5.0, 90.0)))[2].level, Level::Little);
    }

    #[test]
    fn little_memory_is_a_shortage_before_anybody_waits() {
        let mut s = machine(waits(0.0, 0.0), None, None);
        s.model.available = Bytes::mib(99);
        assert_eq!((sentence(&s).as_str(), names(&s).as_str()), ("memory (99 MiB left)", "memory"));
        s.machine.memory_pressure = waits(20.0, 0.0);
        assert_eq!(sentence(&s), "memory (much)");
        s.model.available = Bytes::mib(800);
        assert_eq!(sentence(&s), "memory (much in the last 10 s: 800 MiB are available again)");
        assert!(!is_in_a_group(&s), "no group is at a limit");
        s.group_at_limit = Some("user.slice/a\x1bb".into());
        let at = "at the limit of the group user.slice/a\\u001bb: 800 MiB are available";
        assert_eq!(sentence(&s), format!("memory (much, {at})"));
        assert!(is_in_a_group(&s));
    }
}
