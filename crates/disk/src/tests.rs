//! What the disk keeps and what it loses, through the mount.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;

use super::*;
use crate::contents::{BLOCK, SECTOR};

/// What becomes of a world under many seeds.
fn outcomes<T: Ord>(make: impl Fn(&Path), look: impl Fn(&Path) -> T) -> BTreeSet<T> {
    let after = |seed| {
        let place = tempfile::tempdir().unwrap();
        let disk = LossyDisk::mount(place.path(), seed).unwrap();
        make(disk.place());
        disk.lose_power();
        look(disk.place())
    };
    (0..40).map(after).collect()
}

fn sync(path: &Path) {
    fs::File::open(path).unwrap().sync_all().unwrap();
}

#[test]
fn lossy_disk_keeps_synced_data() {
    let make = |dir: &Path| {
        fs::create_dir(dir.join("data")).unwrap();
        fs::write(dir.join("data/a.tmp"), "synced").unwrap();
        sync(&dir.join("data/a.tmp"));
        fs::rename(dir.join("data/a.tmp"), dir.join("data/a")).unwrap();
        sync(&dir.join("data"));
        sync(dir);
    };
    let found = outcomes(make, |dir| fs::read_to_string(dir.join("data/a")).unwrap());
    assert_eq!(found, BTreeSet::from(["synced".to_owned()]));
}

#[test]
fn lossy_disk_may_lose_unsynced_data_partly() {
    let size = 2 * BLOCK;
    let make = |dir: &Path| {
        let file = fs::File::create(dir.join("a")).unwrap();
        file.write_all_at(&vec![1; size], 0).unwrap();
        file.sync_all().unwrap();
        sync(dir);
        file.write_all_at(&vec![2; size], 0).unwrap();
        fs::rename(dir.join("a"), dir.join("b")).unwrap();
    };
    let look = |dir: &Path| {
        let (a, b) = (fs::read(dir.join("a")), fs::read(dir.join("b")));
        let is_renamed = b.is_ok();
        assert_ne!(is_renamed, a.is_ok(), "a rename is done or not");
        let bytes = a.or(b).unwrap();
        assert_eq!(bytes.len(), size);
        let changed = bytes.chunks(SECTOR).filter(|sector| **sector == [2; SECTOR]).count();
        let is_whole = bytes.chunks(SECTOR).all(|it| it.iter().all(|byte| *byte == it[0]));
        assert!(is_whole, "sectors are not torn");
        (is_renamed, changed)
    };
    let found = outcomes(make, look);
    let changed: BTreeSet<_> = found.iter().map(|(_, changed)| *changed).collect();
    assert!(changed.contains(&0) && changed.contains(&(size / SECTOR)) && changed.len() > 2);
    assert_eq!(found.iter().map(|(is_renamed, _)| is_renamed).collect::<BTreeSet<_>>().len(), 2);
}

#[test]
fn lossy_disk_keeps_file_lengths_and_zeros() {
    let place = tempfile::tempdir().unwrap();
    let disk = LossyDisk::mount(place.path(), 1).unwrap();
    let path = disk.place().join("a");
    let file = fs::File::create_new(&path).unwrap();
    file.write_all_at(b"end", 10_000).unwrap();
    assert_eq!(fs::read(&path).unwrap(), [&[0; 10_000][..], b"end"].concat());
    file.set_len(10_001).unwrap();
    file.set_len(10_003).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 5).unwrap();
    assert_eq!(fs::read(&path).unwrap(), [&[0; 10_000][..], b"e\0\0"].concat());
    fs::remove_file(&path).unwrap();
    assert_eq!(fs::read_dir(disk.place()).unwrap().count(), 0);
}

#[test]
fn a_failing_disk_refuses_some_of_everything_until_it_is_sound() {
    let place = tempfile::tempdir().unwrap();
    let disk = LossyDisk::mount(place.path(), 1).unwrap();
    let path = disk.place().join("a");
    let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    file.write_all_at(b"kept", 0).unwrap();
    disk.set_health(Health::Failing);
    let refused = |work: &dyn Fn() -> io::Result<()>| {
        let errors = (0..64).filter_map(|_| work().err());
        let codes: Vec<_> = errors.map(|error| error.raw_os_error()).collect();
        let eio = Some(rustix::io::Errno::IO.raw_os_error());
        assert!(codes.len() > 8 && codes.len() < 56, "{codes:?}");
        assert!(codes.iter().all(|code| *code == eio), "{codes:?}");
    };
    refused(&|| file.read_exact_at(&mut [0; 4], 0));
    refused(&|| file.write_all_at(b"more", 4));
    refused(&|| file.sync_all());
    disk.set_health(Health::Sound);
    file.sync_all().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"keptmore");
}

#[test]
fn a_slow_disk_takes_its_time_for_each_request() {
    let place = tempfile::tempdir().unwrap();
    let disk = LossyDisk::mount(place.path(), 1).unwrap();
    let file = fs::File::create(disk.place().join("a")).unwrap();
    let delay = Duration::from_millis(20);
    disk.set_health(Health::Slow(delay));
    let started = std::time::Instant::now();
    file.write_all_at(b"slow", 0).unwrap();
    file.sync_all().unwrap();
    assert!(started.elapsed() >= 2 * delay);
}
