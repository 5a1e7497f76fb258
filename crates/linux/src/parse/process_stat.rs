//! `/proc/PID/stat` (proc_pid_stat(5)): one process or thread. Times are in clock ticks.

/// `PF_KTHREAD` (include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// `PF_FORKNOEXEC`.
const FORKED_ONLY: u64 = 0x40;

/// The fields that eke uses. The comments give each field's number in the manual page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessStat<'a> {
    /// Field 1: pid.
    pub pid: u32,
    /// Field 2: name, which may contain blanks and brackets.
    pub name: &'a str,
    /// Field 3: state: `R`, `S`, `D`, `Z` and so on.
    pub state: char,
    /// Field 4: pid of the parent.
    pub parent: u32,
    /// Field 5: process group.
    pub group: u32,
    /// Field 6: session.
    pub session: u32,
    /// Field 7: whether it has a controlling terminal.
    pub has_terminal: bool,
    /// Field 9: the kernel's flags.
    pub flags: u64,
    /// Field 10: minor page faults.
    pub minor_faults: u64,
    /// Field 12: major page faults.
    pub major_faults: u64,
    /// Field 13: major page faults of its ended children.
    pub children_major_faults: u64,
    /// Field 14: time in user mode.
    pub user_ticks: u64,
    /// Field 15: time in the kernel.
    pub system_ticks: u64,
    /// Fields 16 and 17: time of its ended children.
    pub children_ticks: u64,
    /// Field 22: start time since boot.
    pub start_ticks: u64,
    /// Field 24: resident pages.
    pub resident_pages: u64,
}

impl ProcessStat<'_> {
    /// Its CPU time without its children's.
    pub fn ticks(&self) -> u64 {
        self.user_ticks.saturating_add(self.system_ticks)
    }

    /// Whether it has ended. A zombie has: it only waits for its parent.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// Whether it has executed a program since it was forked.
    pub fn has_executed(&self) -> bool {
        self.flags & FORKED_ONLY == 0
    }

    /// Whether it is a kernel thread.
    pub fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

/// `None` if the text is truncated, as for a process that has ended.
pub fn parse(text: &str) -> Option<ProcessStat<'_>> {
    let (before, after) = text.rsplit_once(')')?;
    let (pid, name) = before.split_once('(')?;
    let mut fields = after.split_ascii_whitespace();
    let mut next = || fields.next();
    let stat = ProcessStat {
        pid: pid.trim().parse().ok()?,
        name,
        state: next()?.chars().next()?,
        parent: next()?.parse().ok()?,
        group: next()?.parse().ok()?,
        session: next()?.parse().ok()?,
        has_terminal: next()? != "0",
        flags: number(skip(&mut next, 1)?)?,
        minor_faults: number(next()?)?,
        major_faults: number(skip(&mut next, 1)?)?,
        children_major_faults: number(next()?)?,
        user_ticks: number(next()?)?,
        system_ticks: number(next()?)?,
        children_ticks: number(next()?)?.saturating_add(number(next()?)?),
        start_ticks: number(skip(&mut next, 4)?)?,
        resident_pages: number(skip(&mut next, 1)?)?,
    };
    Some(stat)
}

/// The field after `count` others.
fn skip<'a>(next: &mut impl FnMut() -> Option<&'a str>, count: usize) -> Option<&'a str> {
    for _ in 0..count {
        next()?;
    }
    next()
}

/// The kernel prints some of the fields as signed numbers.
fn number(field: &str) -> Option<u64> {
    field.parse().ok().or_else(|| field.parse::<i64>().ok().map(|_| 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_process_with_a_nasty_name() {
        let text = "42 (a) b (c) S 7 8 9 0 -1 4 2 1 5 6 30 12 3 4 20 0 1 0 98765 1 77";
        let stat = parse(text).unwrap();
        assert_eq!((stat.pid, stat.name, stat.state, stat.parent), (42, "a) b (c", 'S', 7));
        assert_eq!((stat.group, stat.session, stat.flags), (8, 9, 4));
        assert_eq!((stat.minor_faults, stat.major_faults, stat.children_major_faults), (2, 5, 6));
        assert_eq!((stat.ticks(), stat.user_ticks, stat.children_ticks), (42, 30, 7));
        assert_eq!((stat.start_ticks, stat.resident_pages), (98_765, 77));
        assert!(!stat.has_ended() && !stat.is_kernel_thread());
    }

    #[test]
    fn a_truncated_text_is_no_process() {
        for text in ["", "garbage", "1 (x) S", "1 )x( S 1", "42 (a) S 1 1 1 0 -1 4 0 0 5 6 30 12"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_zombie_has_ended_and_a_kernel_thread_is_one() {
        let stat = |state, flags: u64| {
            let text = format!("2 (kthreadd) {state} 0 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0");
            parse(&text).map(|s| (s.has_ended(), s.is_kernel_thread()))
        };
        assert_eq!(stat("Z", 0x0020_8040), Some((true, true)));
        assert_eq!(stat("S", 4_194_304), Some((false, false)));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_a_process_or_none(text in "(?s).{0,200}") {
            let _ = parse(&text);
        }
    }
}
