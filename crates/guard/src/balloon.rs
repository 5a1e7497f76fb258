//! A virtual machine's balloon that gives memory back when the kernel's OOM killer would act.

use eke_linux::Root;
use eke_linux::parse::keyed;

const DRIVER: &str = "sys/bus/virtio/drivers/virtio_balloon";
/// `VIRTIO_BALLOON_F_DEFLATE_ON_OOM` (include/uapi/linux/virtio_balloon.h).
const DEFLATES_ON_OOM: usize = 2;

/// Whether there is one with pages: they count as used. The kernel counts its pages in `/proc/vmstat`, and tells nowhere how many of them the host would give
/// back.
pub(crate) fn deflates_on_oom(root: &Root) -> bool {
    let has_feature = |device: &String| {
        let features = root.read(format!("{DRIVER}/{device}/features")).unwrap_or_default();
        features.as_bytes().get(DEFLATES_ON_OOM) == Some(&b'1')
    };
    let devices = root.list(DRIVER).unwrap_or_default();
    devices.iter().filter(|name| name.starts_with("virtio")).any(has_feature) && has_pages(root)
}

/// A kernel without the counters may have any number.
fn has_pages(root: &Root) -> bool {
    let text = root.read("proc/vmstat").unwrap_or_default();
    let count = |name| keyed::count(&text, name);
    match (count("balloon_inflate"), count("balloon_deflate")) {
        (Some(inflated), Some(deflated)) => inflated > deflated,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    #[test]
    fn a_balloon_deflates_if_its_driver_took_the_feature() {
        for (device, features, deflates) in [
            ("virtio3", "0110000000000000\n", true),
            ("virtio3", "1100000000000000\n", false),
            ("virtio3", "01", false),
            ("module", "0110000000000000\n", false),
        ] {
            let kernel = FakeKernel::new();
            kernel.put(&format!("{DRIVER}/{device}/features"), features);
            assert_eq!(deflates_on_oom(&kernel.root()), deflates, "{device} {features}");
        }
        assert!(!deflates_on_oom(&FakeKernel::new().root()));
    }

    #[test]
    fn an_empty_balloon_gives_nothing_back() {
        for (counters, deflates) in [
            ("balloon_inflate 0\nballoon_deflate 0\n", false),
            ("balloon_inflate 9000\nballoon_deflate 9000\n", false),
            ("balloon_inflate 9001\nballoon_deflate 9000\n", true),
            ("pswpin 3\n", true),
        ] {
            let kernel = FakeKernel::new();
            kernel.put(&format!("{DRIVER}/virtio3/features"), "0110000000000000\n");
            kernel.put("proc/vmstat", counters);
            assert_eq!(deflates_on_oom(&kernel.root()), deflates, "{counters}");
        }
    }
}
