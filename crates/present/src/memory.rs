//! How RAM is split.

use eke_model::snapshot::Snapshot;
use eke_model::units::Bytes;

/// A part of RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its size.
    pub size: Bytes,
    /// Its character in the bar: parts differ without colours too.
    pub symbol: char,
}

/// The index of the compressed pool among the parts.
pub const POOL: usize = 2;

/// Anonymous memory (with shared memory, which also goes to swap only), file cache, the compressed pool, the rest (the kernel's own), free;
/// together all of RAM. The counters are not of one instant: an overlap reduces the rest.
pub fn parts(s: &Snapshot) -> [Part; 5] {
    let memory = &s.machine.memory;
    let anonymous = memory.anonymous + memory.shared;
    let named = anonymous + memory.file_cache + s.model.pool + memory.free;
    let part = |name, size, symbol| Part { name, size, symbol };
    [
        part("anonymous", anonymous, '█'),
        part("file cache", memory.file_cache, '▓'),
        part("pool", s.model.pool, '▒'),
        part("kernel", memory.total.saturating_sub(named), '░'),
        part("free", memory.free, '·'),
    ]
}

#[cfg(test)]
mod tests {
    use eke_model::model::Model;
    use eke_model::sample::Memory;
    use eke_model::snapshot::Machine;

    use super::*;

    #[test]
    fn the_parts_are_all_of_ram() {
        let memory = Memory {
            total: Bytes::mib(1000),
            free: Bytes::mib(100),
            anonymous: Bytes::mib(400),
            shared: Bytes::mib(50),
            file_cache: Bytes::mib(200),
            ..Memory::default()
        };
        let model = Model { pool: Bytes::mib(150), ..Model::default() };
        let mut s =
            Snapshot { model, machine: Machine { memory, ..Machine::default() }, ..Snapshot::default() };
        assert_eq!(parts(&s).map(|p| p.size.0 >> 20), [450, 200, 150, 100, 100]);
        s.machine.memory.free = Bytes::mib(300);
        assert_eq!(parts(&s)[3].size, Bytes(0));
    }
}
