//! A virtual machine's balloon that gives memory back when the kernel's OOM killer would act.

use eke_linux::Root;

const DRIVER: &str = "sys/bus/virtio/drivers/virtio_balloon";
/// `VIRTIO_BALLOON_F_DEFLATE_ON_OOM` (include/uapi/linux/virtio_balloon.h).
const DEFLATES_ON_OOM: usize = 2;

/// Whether there is one. Its pages count as used, and no file says how many the host would give back.
pub(crate) fn deflates_on_oom(root: &Root) -> bool {
    let has_feature = |device: &String| {
        let features = root.read(format!("{DRIVER}/{device}/features")).unwrap_or_default();
        features.as_bytes().get(DEFLATES_ON_OOM) == Some(&b'1')
    };
    root.list(DRIVER).unwrap_or_default().iter().filter(|name| name.starts_with("virtio")).any(has_feature)
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
}
