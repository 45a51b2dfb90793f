//! What the disk keeps and what it loses, through the mount.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileExt;

use super::*;

/// What becomes of a world under many seeds.
fn outcomes<T: Ord>(make: impl Fn(&Path), look: impl Fn(&Path) -> T) -> BTreeSet<T> {
    let after = |seed| {
        let disk = LossyDisk::mount(seed);
        make(disk.dir.path());
        disk.lose_power();
        look(disk.dir.path())
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
    let disk = LossyDisk::mount(1);
    let path = disk.dir.path().join("a");
    let file = fs::File::create_new(&path).unwrap();
    file.write_all_at(b"end", 10_000).unwrap();
    assert_eq!(fs::read(&path).unwrap(), [&[0; 10_000][..], b"end"].concat());
    file.set_len(10_001).unwrap();
    file.set_len(10_003).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 5).unwrap();
    assert_eq!(fs::read(&path).unwrap(), [&[0; 10_000][..], b"e\0\0"].concat());
    fs::remove_file(&path).unwrap();
    assert_eq!(fs::read_dir(disk.dir.path()).unwrap().count(), 0);
}
