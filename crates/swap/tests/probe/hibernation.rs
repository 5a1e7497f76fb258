//! The area that the machine hibernates to.

use crate::machine::Fake;

#[test]
fn the_hibernation_area_is_named() {
    let fake = Fake::new();
    fake.disk("sda", "sda2", "0\n", "0\n").link("dev/disk/by-uuid/ab-cd", "../../sda2");
    fake.file("proc/cmdline", "quiet resume=UUID=ab-cd\n").swaps("/dev/sda2 partition 1024 0 -2\n");
    let facts = fake.facts();
    assert!(facts.disk_areas[0].hibernation);
    assert_eq!(facts.hibernation.unwrap().device.as_deref(), Some("sda2"));
}

#[test]
fn the_kernels_own_resume_device_counts_before_the_command_line() {
    let fake = Fake::new();
    fake.file("sys/power/resume", "8:2\n").link("sys/dev/block/8:2", "../../devices/x/block/sda/sda2");
    assert_eq!(fake.facts().hibernation.unwrap().device.as_deref(), Some("sda2"));
    fake.file("sys/power/resume", "0:0\n");
    assert_eq!(fake.facts().hibernation, None);
}

#[test]
fn what_debians_initramfs_resumes_from() {
    let resumes = |line: &str, swaps: &str| {
        let fake = Fake::new();
        for partition in ["sda2", "sda3", "zram0"] {
            fake.file(&format!("dev/{partition}"), "")
                .file(&format!("sys/class/block/{partition}/size"), "99999\n");
        }
        fake.link("dev/disk/by-uuid/ab-cd", "../../sda2");
        fake.file("etc/initramfs-tools/conf.d/resume", line).swaps(swaps);
        let facts = fake.facts();
        let named: Vec<bool> = facts.disk_areas.iter().map(|area| area.hibernation).collect();
        (facts.hibernation.map(|h| (h.resume, h.device.unwrap())), named)
    };
    let target = |resume: &str, device: &str| Some((resume.to_owned(), device.to_owned()));
    let swaps = "/dev/zram0 partition 9000 0 100\n/dev/sda2 partition 1024 0 -2\n/dev/sda3 partition 4096 0 -3\n/swap file 8192 0 -4\n";
    assert_eq!(
        resumes("RESUME=UUID=ab-cd\n", swaps),
        (target("UUID=ab-cd", "sda2"), vec![true, false, false])
    );
    assert_eq!(resumes("RESUME=auto\n", swaps), (target("/dev/sda3", "sda3"), vec![false, true, false]));
    assert_eq!(resumes("RESUME=none\n", swaps), (None, vec![false; 3]));
    let none_on_a_device = "/dev/zram0 partition 9000 0 100\n/swap file 8192 0 -2\n";
    assert_eq!(resumes("RESUME=auto\n", none_on_a_device), (None, vec![false]));
}
