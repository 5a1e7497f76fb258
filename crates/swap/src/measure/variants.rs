//! The algorithms to measure, their parameters, and their pages of the sample. Pure.

/// One algorithm with one set of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub name: String,
    pub params: Option<String>,
}

/// Each algorithm with the kernel's defaults, and zstd and lz4hc with other levels, if the kernel accepts parameters (Linux 6.12). zstd's default is 3: 1
/// is for slow CPUs, and 8 is the highest ratio of the kernel's own test (commit 6a559ecd6e7e). lz4hc's default is 9.
pub(crate) fn variants(algorithms: &[String], with_params: bool) -> Vec<Variant> {
    let mut all = Vec::new();
    for name in algorithms {
        all.push(Variant { name: name.clone(), params: None });
        let levels: &[i32] = match name.as_str() {
            "zstd" if with_params => &[1, 8],
            "lz4hc" if with_params => &[4],
            _ => &[],
        };
        all.extend(levels.iter().map(|l| Variant { name: name.clone(), params: Some(format!("level={l}")) }));
    }
    all
}

/// Every `every`th of `pages` pages: the part that warms the allocator up, from all processes alike.
pub(crate) fn warm_up(pages: usize, every: usize) -> Vec<usize> {
    (0..pages).step_by(every.max(1)).collect()
}

/// The other pages in their order, at most `room` of them, evenly spread.
pub(crate) fn remaining(pages: usize, every: usize, room: usize) -> Vec<usize> {
    let rest: Vec<usize> = (0..pages).filter(|i| i % every.max(1) != 0).collect();
    spread(&rest, room)
}

/// At most `room` of `items`, evenly spread, in their order.
pub(crate) fn spread(items: &[usize], room: usize) -> Vec<usize> {
    if items.len() <= room {
        return items.to_vec();
    }
    (0..room).map(|i| items[i * items.len() / room]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn levels_only_if_the_kernel_accepts_them() {
        let names = ["lzo-rle".to_owned(), "zstd".to_owned()];
        let shown = |with| {
            variants(&names, with)
                .iter()
                .map(|v| v.params.clone().unwrap_or(v.name.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(false), ["lzo-rle", "zstd"]);
        assert_eq!(shown(true), ["lzo-rle", "zstd", "level=1", "level=8"]);
    }

    proptest! {
        #[test]
        fn both_parts_together_are_every_page_once(pages in 0usize..500, every in 1usize..9) {
            let mut all = warm_up(pages, every);
            all.extend(remaining(pages, every, usize::MAX));
            all.sort_unstable();
            prop_assert_eq!(all, (0..pages).collect::<Vec<_>>());
        }

        #[test]
        fn spreading_keeps_order_and_room(n in 0usize..500, room in 0usize..500) {
            let items: Vec<usize> = (0..n).collect();
            let few = spread(&items, room);
            prop_assert_eq!(few.len(), n.min(room));
            prop_assert!(few.windows(2).all(|w| w[0] < w[1]));
        }
    }
}
