//! One sample as a row, and a named step.

macro_rules! row {
    (gauges { $($(#[$gdoc:meta])* $gauge:ident,)* } counters { $($(#[$cdoc:meta])* $counter:ident,)* }) => {
        /// One sample; `None` if the kernel or the kind of recording lacks a value.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Row {
            /// Milliseconds since the recording started.
            pub time_ms: u64,
            $($(#[$gdoc])* pub $gauge: Option<u64>,)*
            $($(#[$cdoc])* pub $counter: Option<u64>,)*
        }

        impl Row {
            /// The columns after `time_ms`, in the order of [`Row::values`].
            pub const COLUMNS: &[&str] = &[$(stringify!($gauge),)* $(stringify!($counter),)*];

            /// The values without the time.
            pub fn values(&self) -> Vec<Option<u64>> {
                vec![$(self.$gauge,)* $(self.$counter,)*]
            }

            /// A row from the values that `next` returns for each column in order.
            ///
            /// # Errors
            /// The first error of `next`.
            pub fn from_values<E>(time_ms: u64, mut next: impl FnMut() -> Result<Option<u64>, E>) -> Result<Self, E> {
                Ok(Self { time_ms, $($gauge: next()?,)* $($counter: next()?,)* })
            }

            /// The growth of counters since `start`; 0 for one that went back.
            #[must_use]
            pub fn since(mut self, start: &Self) -> Self {
                $(self.$counter = self.$counter.map(|n| n.saturating_sub(start.$counter.unwrap_or(0)));)*
                self
            }
        }
    };
}

row! {
    gauges {
        /// Free RAM.
        free_bytes,
        /// The kernel's estimate of the RAM that programs can still get.
        available_bytes,
        /// Anonymous pages in RAM.
        anonymous_bytes,
        /// Page cache with buffers, without shared memory.
        file_cache_bytes,
        /// Used swap, uncompressed.
        swapped_bytes,
        /// Compressed pages (zram as swap, zswap), uncompressed.
        held_bytes,
        /// The RAM of these compressed pages.
        pool_bytes,
        /// Resident pages of the recorded processes; a page shared by two counts twice.
        tree_rss_bytes,
        /// The number of processes.
        tree_processes,
    }
    counters {
        /// Pages swapped in, those from zswap included.
        pages_in,
        /// Pages swapped out, those to zswap included.
        pages_out,
        /// Major faults of the machine.
        major_faults,
        /// Processes that the kernel killed for lack of memory.
        oom_kills,
        /// Microseconds in which some task waited for memory.
        memory_some_us,
        /// Microseconds in which all tasks waited for memory.
        memory_full_us,
        /// Microseconds in which some task waited for I/O.
        io_some_us,
        /// Microseconds in which all tasks waited for I/O.
        io_full_us,
        /// Milliseconds of all CPUs in which they were busy.
        cpu_busy_ms,
        /// Milliseconds of all CPUs.
        cpu_total_ms,
        /// CPU time of the recorded processes, ended ones included.
        tree_cpu_ms,
        /// Major faults of the recorded processes, ended ones included.
        tree_major_faults,
    }
}

/// The start of a named step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// Milliseconds since the recording started.
    pub time_ms: u64,
    /// Its name.
    pub name: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_stay_and_counters_start_at_zero() {
        let start = Row { free_bytes: Some(5), pages_in: Some(100), pages_out: Some(9), ..Row::default() };
        let now = Row { free_bytes: Some(7), pages_in: Some(130), pages_out: Some(2), ..Row::default() };
        let row = now.since(&start);
        assert_eq!((row.free_bytes, row.pages_in, row.pages_out), (Some(7), Some(30), Some(0)));
        assert_eq!(row.io_some_us, None);
    }

    #[test]
    fn values_and_columns_are_in_the_same_order() {
        let mut n = 0;
        let row = Row::from_values(3, || {
            n += 1;
            Ok::<_, ()>(Some(n))
        })
        .unwrap();
        assert_eq!(row.values(), (1..=n).map(Some).collect::<Vec<_>>());
        assert_eq!(Row::COLUMNS.len(), row.values().len());
        assert_eq!((Row::COLUMNS[0], row.free_bytes), ("free_bytes", Some(1)));
    }
}
