//! The algorithms to measure, their parameters, and their pages of the sample. Pure.

/// One algorithm with one set of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    pub name: String,
    pub params: Option<String>,
    /// The path of its dictionary
    pub dictionary: Option<String>,
    /// What compresses instead of the CPU, if something does: its latency is more than the CPU's time then.
    pub hardware: Option<String>,
}

impl Variant {
    /// With the kernel's defaults.
    pub(crate) fn as_shipped(name: &str) -> Self {
        Self { name: name.to_owned(), params: None, dictionary: None, hardware: None }
    }
}

/// Each algorithm with the kernel's defaults, and zstd and lz4hc with other levels, if the kernel accepts parameters (Linux 6.12). zstd's default is 3: 1
/// is for slow CPUs, and 8 is the highest ratio of the kernel's own test (commit 6a559ecd6e7e). lz4hc's default is 9. The same again for zstd with a
/// dictionary, if there is one: a level and a dictionary are two parameters of one device.
pub(crate) fn variants(algorithms: &[String], with_params: bool, dictionary: Option<String>) -> Vec<Variant> {
    let mut all = Vec::new();
    for name in algorithms {
        let levels: &[i32] = match name.as_str() {
            "zstd" if with_params => &[1, 8],
            "lz4hc" if with_params => &[4],
            _ => &[],
        };
        let with = |params, dictionary| Variant { params, dictionary, ..Variant::as_shipped(name) };
        let params = || std::iter::once(None).chain(levels.iter().map(|l| Some(format!("level={l}"))));
        all.extend(params().map(|params| with(params, None)));
        if let (true, Some(_)) = (name == "zstd", &dictionary) {
            all.extend(params().map(|params| with(params, dictionary.clone())));
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
    }

    #[test]
    fn zstd_has_its_levels_with_a_dictionary_too() {
        let names = ["lzo-rle".to_owned(), "lz4hc".to_owned(), "zstd".to_owned()];
        let with = |params| {
            let all = variants(&names, params, Some("/dictionary".into()));
            let own = all.into_iter().filter(|v| v.dictionary.as_deref() == Some("/dictionary"));
            own.map(|v| (v.name, v.params)).collect::<Vec<_>>()
        };
        let zstd = |level: Option<&str>| ("zstd".to_owned(), level.map(str::to_owned));
        assert_eq!(with(true), [zstd(None), zstd(Some("level=1")), zstd(Some("level=8"))]);
        assert_eq!(with(false), [zstd(None)]);
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
