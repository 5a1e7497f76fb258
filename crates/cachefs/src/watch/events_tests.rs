use proptest::prelude::*;

use super::*;

const MODIFY: u64 = libc::FAN_MODIFY;

/// An information record of this type with this body.
fn record(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + body.len()).unwrap().to_ne_bytes();
    [&[kind, 0, len[0], len[1]], body].concat()
}

/// `struct file_handle`.
fn file_handle(bytes: &[u8]) -> Vec<u8> {
    let count = u32::try_from(bytes.len()).unwrap();
    [&count.to_ne_bytes()[..], &1i32.to_ne_bytes(), bytes].concat()
}

fn fid(handle: &[u8]) -> Vec<u8> {
    record(libc::FAN_EVENT_INFO_TYPE_FID, &[&[9; 8], handle].concat())
}

fn event(mask: u64, fd: i32, pid: i32, records: &[u8]) -> Vec<u8> {
    let len = u32::try_from(METADATA + records.len()).unwrap();
    let mut all = len.to_ne_bytes().to_vec();
    all.extend([libc::FANOTIFY_METADATA_VERSION, 0]);
    all.extend(24u16.to_ne_bytes());
    all.extend(mask.to_ne_bytes());
    all.extend(fd.to_ne_bytes());
    all.extend(pid.to_ne_bytes());
    all.extend(records);
    all
}

fn all(buffer: &[u8]) -> Vec<Result<Event<'_>, EventError>> {
    events(buffer).collect()
}

#[test]
fn events_of_both_kinds_follow_each_other() {
    let handle = file_handle(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let buffer = [
        event(MODIFY, -1, 7, &fid(&handle)),
        event(MODIFY, 5, 8, &[]),
        event(libc::FAN_Q_OVERFLOW, -1, 0, &[]),
    ]
    .concat();
    let expected = [
        Ok(Event { mask: MODIFY, pid: 7, fd: -1, handle: Some(&handle[..]), name: None }),
        Ok(Event { mask: MODIFY, pid: 8, fd: 5, handle: None, name: None }),
        Ok(Event { mask: libc::FAN_Q_OVERFLOW, pid: 0, fd: -1, handle: None, name: None }),
    ];
    assert_eq!(all(&buffer), expected);
    assert_eq!(all(&[]), []);
}

#[test]
fn the_file_is_found_behind_its_directory() {
    let (dir, file) = (file_handle(&[1; 8]), file_handle(&[2; 8]));
    // The kernel pads the name with zeros.
    let named = record(libc::FAN_EVENT_INFO_TYPE_DFID_NAME, &[&[9; 8], &dir[..], b"name\0\0\0\0"].concat());
    let buffer = event(MODIFY, -1, 7, &[named, fid(&file)].concat());
    let found = all(&buffer)[0].unwrap();
    assert_eq!(found.handle, Some(&file[..]));
    assert_eq!(found.name, Some(EventName { dir: &dir, name: b"name" }));
}

#[test]
fn a_directory_without_a_name_is_no_name() {
    let dir = file_handle(&[1; 8]);
    for after in [&b""[..], b"\0"] {
        let named = record(libc::FAN_EVENT_INFO_TYPE_DFID_NAME, &[&[9; 8], &dir[..], after].concat());
        assert_eq!(all(&event(MODIFY, -1, 7, &named))[0].unwrap().name, None);
    }
}

#[test]
fn a_handle_without_bytes_is_none() {
    let buffer = event(MODIFY, -1, 7, &fid(&file_handle(&[])));
    assert_eq!(all(&buffer)[0].unwrap().handle, None);
}

#[test]
fn invalid_lengths_end_the_iteration() {
    let good = event(MODIFY, -1, 7, &fid(&file_handle(&[1; 8])));
    let with = |at: usize, byte: u8| {
        let mut bad = [good.clone(), good.clone()].concat();
        bad[good.len() + at] = byte;
        bad
    };
    for (at, byte, error) in [
        (0, 0, EventError::Length),
        (0, 23, EventError::Length),
        (0, 255, EventError::Length),
        (3, 255, EventError::Length),
        (4, 2, EventError::Version(2)),
        (6, 255, EventError::Length),
        (METADATA + 2, 0, EventError::Length),
        (METADATA + 2, 3, EventError::Length),
        (METADATA + 2, 255, EventError::Length),
        (METADATA + FID, 9, EventError::Length),
        (METADATA + FID + 3, 255, EventError::Length),
    ] {
        let buffer = with(at, byte);
        let found = all(&buffer);
        assert_eq!(found.len(), 2, "byte {at} as {byte}");
        assert!(found[0].is_ok());
        assert_eq!(found[1], Err(error), "byte {at} as {byte}");
    }
    assert_eq!(all(&good[..good.len() - 1]), [Err(EventError::Length)]);
    assert_eq!(all(&good[..METADATA - 1]), [Err(EventError::Length)]);
}

proptest! {
    #[test]
    fn foreign_bytes_are_refused_or_lie_in_the_buffer(buffer in proptest::collection::vec(any::<u8>(), 0..400)) {
        for event in events(&buffer).flatten() {
            if let Some(handle) = event.handle {
                prop_assert!(buffer.as_ptr_range().contains(&handle.as_ptr()) && handle.len() > HANDLE);
            }
            if let Some(EventName { dir, name }) = event.name {
                prop_assert!(buffer.as_ptr_range().contains(&dir.as_ptr()) && dir.len() > HANDLE);
                prop_assert!(buffer.as_ptr_range().contains(&name.as_ptr()) && !name.contains(&0));
            }
        }
    }

    #[test]
    fn damaged_events_never_return_more_than_the_buffer_has(
        pids in proptest::collection::vec(any::<i32>(), 1..6),
        at in any::<proptest::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let record = fid(&file_handle(&[3; 8]));
        let mut buffer: Vec<u8> = pids.iter().flat_map(|pid| event(MODIFY, -1, *pid, &record)).collect();
        let whole: Vec<i32> = events(&buffer).map(|e| e.unwrap().pid).collect();
        prop_assert_eq!(&whole, &pids);
        let at = at.index(buffer.len());
        buffer[at] = byte;
        let found = all(&buffer);
        prop_assert!(found.len() <= buffer.len() / METADATA + 1);
        prop_assert!(found.iter().rev().skip(1).all(Result::is_ok), "nothing follows an error");
        let before = at / (METADATA + record.len());
        for (event, pid) in found.iter().zip(&pids).take(before) {
            prop_assert_eq!(event.unwrap().pid, *pid, "what lies before the damage is unhurt");
        }
    }
}
