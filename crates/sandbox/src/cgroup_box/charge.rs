//! The share of the compressed pools that a box is charged for.

use eke_linux::Root;
use eke_linux::cgroup::Hierarchy;
use eke_linux::{parse, read};
use eke_model::units::Bytes;

/// The used swap of the whole machine, and the RAM of its pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pools {
    /// All used swap, uncompressed, on any device.
    pub swapped: Bytes,
    /// RAM of the pools that the kernel charges to no group.
    pub ram: Bytes,
}

/// The charge of a box, by its share of all swapped pages. The pools do not record the owner of a page, so boxes whose pages compress
/// differently pay the mean. If all pages repeat one word, they take no RAM and cost nothing. The share is at most 1, although the two
/// numbers are read one after the other.
pub fn charge(swapped_by_box: Bytes, pools: Pools) -> Bytes {
    if pools.swapped.0 == 0 {
        return Bytes(0);
    }
    let share = u128::from(swapped_by_box.0.min(pools.swapped.0));
    let owed = u128::from(pools.ram.0) * share / u128::from(pools.swapped.0);
    Bytes(u64::try_from(owed).unwrap_or(u64::MAX))
}

/// Reads the pools: zram devices in use as swap, and zswap's pool unless the kernel charges it to groups itself (cgroup v2 since Linux 5.19).
///
/// # Errors
/// `/proc/swaps` cannot be read.
pub fn read_pools(root: &Root, hierarchy: Hierarchy) -> eke_linux::error::Result<Pools> {
    let areas = read::swaps(root)?;
    let zram: Bytes =
        areas.iter().filter_map(|a| read::zram_stat(root, a.zram_name()?)).map(|z| z.mem_used).sum();
    let zswap = match hierarchy {
        Hierarchy::V2 => Bytes(0),
        Hierarchy::V1 => parse::meminfo::parse(&root.read("proc/meminfo")?).zswap_pool.unwrap_or_default(),
    };
    Ok(Pools { swapped: areas.iter().map(|a| a.used).sum(), ram: zram + zswap })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pools(swapped_mib: u64, ram_mib: u64) -> Pools {
        Pools { swapped: Bytes::mib(swapped_mib), ram: Bytes::mib(ram_mib) }
    }

    #[test]
    fn the_charge_is_a_share_of_the_pool() {
        assert_eq!(charge(Bytes::mib(90), pools(90, 30)), Bytes::mib(30));
        assert_eq!(charge(Bytes::mib(90), pools(180, 60)), Bytes::mib(30));
    }

    #[test]
    fn without_swap_or_pool_nothing_is_charged() {
        assert_eq!(charge(Bytes(0), Pools::default()), Bytes(0));
        assert_eq!(charge(Bytes::mib(90), pools(90, 0)), Bytes(0));
        assert_eq!(charge(Bytes(0), pools(90, 30)), Bytes(0));
        assert_eq!(charge(Bytes::mib(4), pools(0, 1)), Bytes(0), "freed between the two readings");
    }

    proptest! {
        #[test]
        fn a_charge_is_at_most_the_pool_and_grows_with_the_share(a: u64, b: u64, swapped: u64, ram: u64) {
            let pools = Pools { swapped: Bytes(swapped), ram: Bytes(ram) };
            let (less, more) = (charge(Bytes(a.min(b)), pools), charge(Bytes(a.max(b)), pools));
            prop_assert!(less <= more && more.0 <= ram);
        }

        #[test]
        fn two_boxes_that_hold_all_swap_pay_all_of_the_pool(a in 0u64..1 << 40, b in 1u64..1 << 40, ram in 0u64..1 << 40) {
            let pools = Pools { swapped: Bytes(a + b), ram: Bytes(ram) };
            let paid = charge(Bytes(a), pools).0 + charge(Bytes(b), pools).0;
            prop_assert!(paid <= ram && paid + 1 >= ram);
        }
    }
}
