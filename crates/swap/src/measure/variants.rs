//! The algorithms to measure, their parameters, and their pages of the sample. Pure.

/// One algorithm with one set of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub name: String,
    pub params: Option<String>,
    /// The path of its dictionary
    pub dictionary: Option<String>,
}

impl Variant {
    /// With the kernel's defaults.
    pub(crate) fn as_shipped(name: &str) -> Self {
        Self { name: name.to_owned(), params: None, dictionary: None }
    }
}

/// Each algorithm with the kernel's defaults, and zstd and lz4hc with other levels, if the kernel accepts parameters (Linux 6.12). zstd's default is 3: 1
/// is for slow CPUs, and 8 is the highest ratio of the kernel's own test (commit 6a559ecd6e7e). lz4hc's default is 9. zstd with a dictionary, if there is one.
pub(crate) fn variants(algorithms: &[String], with_params: bool, dictionary: Option<String>) -> Vec<Variant> {
    let mut all = Vec::new();
    for name in algorithms {
        all.push(Variant::as_shipped(name));
        let levels: &[i32] = match name.as_str() {
            "zstd" if with_params => &[1, 8],
            "lz4hc" if with_params => &[4],
            _ => &[],
        };
        let with_level = |l| Variant { params: Some(format!("level={l}")), ..Variant::as_shipped(name) };
        all.extend(levels.iter().map(with_level));
        if let (true, Some(_)) = (name == "zstd", &dictionary) {
            all.push(Variant { dictionary: dictionary.clone(), ..Variant::as_shipped(name) });
        }
    }
    all
}

/// The pages of one round, as indexes of the sample. Their place on the device: the warm-up, then the rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PageSet {
    /// These warm the allocator up, from all processes alike.
    pub warm: Vec<usize>,
    /// The others, in the order of the processes.
    pub rest: Vec<usize>,
}

impl PageSet {
    pub(crate) fn len(&self) -> usize {
        self.warm.len() + self.rest.len()
    }

    /// The page of the sample at page `at` of the device, which is below [`PageSet::len`].
    pub(crate) fn stored_at(&self, at: usize) -> usize {
        self.warm.get(at).or_else(|| self.rest.get(at - self.warm.len())).copied().unwrap_or_default()
    }
}

/// One page of so many warms the allocator up.
const WARM_UP_EVERY: usize = 4;
/// The fewest pages for that, if they are at most a third.
const LEAST_WARM: usize = 256;

/// `pages` of a sample of `len` pages, evenly spread.
pub(crate) fn page_set(len: usize, pages: usize) -> PageSet {
    let all: Vec<usize> = (0..len).collect();
    let all = spread(&all, pages);
    let warm = spread(&all, (all.len() / WARM_UP_EVERY).max(LEAST_WARM.min(all.len() / 3)));
    let rest = all.into_iter().filter(|index| warm.binary_search(index).is_err()).collect();
    PageSet { warm, rest }
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
            variants(&names, with, None)
                .iter()
                .map(|v| v.params.clone().unwrap_or(v.name.clone()))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown(false), ["lzo-rle", "zstd"]);
        assert_eq!(shown(true), ["lzo-rle", "zstd", "level=1", "level=8"]);
        let with = variants(&names, true, Some("/dictionary".into()));
        let whose: Vec<_> = with.iter().filter(|v| v.dictionary.is_some()).map(|v| v.name.as_str()).collect();
        assert_eq!((with.len(), whose), (5, vec!["zstd"]));
    }

    proptest! {
        #[test]
        fn both_parts_together_are_every_page_once(len in 0usize..3000, pages in 0usize..3000) {
            let set = page_set(len, pages);
            let mut all: Vec<usize> = (0..set.len()).map(|at| set.stored_at(at)).collect();
            all.sort_unstable();
            prop_assert_eq!(all, spread(&(0..len).collect::<Vec<_>>(), pages));
            prop_assert!(set.rest.len() >= set.warm.len());
            prop_assert!(set.warm.len() >= LEAST_WARM.min(set.len() / 3));
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
