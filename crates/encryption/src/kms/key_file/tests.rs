//! Key files that are made, changed, damaged and shared.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, UNIX_EPOCH};

use moldau_records::crc32c;
use tempfile::TempDir;

use super::*;

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_440_938_160)
}

/// A directory with a key file of one key, `orders`.
fn world() -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("keys");
    KeyFile::init(&path).unwrap();
    KeyFile::add(&path, "orders", now()).unwrap();
    (directory, path)
}

fn id(name: &str) -> KekId {
    KekId(name.into())
}

fn reason<T>(result: Result<T, Error>) -> String {
    result.err().expect("an error").to_string()
}

/// Writes a text with the checksum that belongs to it.
fn write_checked(path: &Path, body: &str) {
    let body = format!("moldau-keys 1\n{body}");
    fs::write(path, format!("{body}crc32c {:08x}\n", crc32c(body.as_bytes()))).unwrap();
}

#[test]
fn a_data_key_is_opened_by_another_process_with_the_file() {
    let (_directory, path) = world();
    let kms = KeyFile::open(&path).unwrap();
    assert_eq!(kms.resolve("orders"), Ok(id("orders")));
    let wrapped = kms.generate(&id("orders")).unwrap();
    let other = KeyFile::open(&path).unwrap();
    assert_eq!(other.decrypt(&wrapped.edek).unwrap().bytes(), wrapped.key.bytes());
    let again = kms.generate(&id("orders")).unwrap();
    assert_ne!(again.key.bytes(), wrapped.key.bytes());
}

#[test]
fn rotation_wraps_with_the_last_version_and_opens_with_all() {
    let (_directory, path) = world();
    let kms = KeyFile::open(&path).unwrap();
    let first = kms.generate(&id("orders")).unwrap();
    assert_eq!(KeyFile::rotate(&path, "orders", now()).unwrap(), 2);
    let second = kms.generate(&id("orders")).unwrap();
    assert_eq!(Parts::read(&first.edek.0).unwrap().version, 1);
    assert_eq!(Parts::read(&second.edek.0).unwrap().version, 2);
    for wrapped in [first, second] {
        assert_eq!(kms.decrypt(&wrapped.edek).unwrap().bytes(), wrapped.key.bytes());
    }
}

#[test]
fn a_key_added_to_the_file_is_found_without_a_restart() {
    let (_directory, path) = world();
    let kms = KeyFile::open(&path).unwrap();
    assert_eq!(kms.resolve("bills"), Err(KmsError::UnknownKey("bills".into())));
    KeyFile::add(&path, "bills", now()).unwrap();
    assert_eq!(kms.resolve("bills"), Ok(id("bills")));
}

#[test]
fn a_file_that_goes_bad_leaves_the_keys_read_before_in_use() {
    let (_directory, path) = world();
    let kms = KeyFile::open(&path).unwrap();
    let wrapped = kms.generate(&id("orders")).unwrap();
    let good = fs::read(&path).unwrap();
    fs::write(&path, "moldau-keys 1\ngarbage").unwrap();
    assert!(kms.decrypt(&wrapped.edek).is_ok());
    fs::remove_file(&path).unwrap();
    assert!(kms.generate(&id("orders")).is_ok());
    create(&path).unwrap().write_all(&good).unwrap();
    assert!(kms.decrypt(&wrapped.edek).is_ok());
}

#[test]
fn a_file_that_others_may_use_is_refused_with_the_remedy() {
    let (_directory, path) = world();
    for (mode, refused) in [(0o640, true), (0o604, true), (0o602, true), (0o400, false)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let opened = KeyFile::open(&path);
        if refused {
            let reason = reason(opened);
            assert!(reason.contains("chmod 600") && reason.contains("keys"), "{reason}");
            assert!(KeyFile::rotate(&path, "orders", now()).is_err());
        } else {
            assert!(opened.is_ok());
        }
    }
}

#[test]
fn files_are_created_and_replaced_for_the_owner_alone() {
    let (directory, path) = world();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    // Files that a crash left behind do not matter, with any permissions.
    fs::write(directory.path().join("keys.tmp"), "left").unwrap();
    KeyFile::rotate(&path, "orders", now()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn what_stands_at_the_path_is_never_overwritten_by_init() {
    let (_directory, path) = world();
    let before = fs::read(&path).unwrap();
    assert!(reason(KeyFile::init(&path)).contains("exists"));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_symbolic_link_stays_and_its_target_is_replaced() {
    let (directory, path) = world();
    let link = directory.path().join("link");
    symlink(&path, &link).unwrap();
    KeyFile::rotate(&link, "orders", now()).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(KeyFile::list(&path).unwrap()[0].active_version, 2);
}

#[test]
fn one_command_at_a_time_changes_the_file() {
    let (_directory, path) = world();
    let held = File::open(&path).unwrap();
    held.lock().unwrap();
    assert!(reason(KeyFile::rotate(&path, "orders", now())).contains("another command"));
    drop(held);
    assert!(KeyFile::rotate(&path, "orders", now()).is_ok());
}

#[test]
fn an_alias_is_added_once_and_rotated_only_if_there() {
    let (_directory, path) = world();
    assert!(reason(KeyFile::add(&path, "orders", now())).contains("rotate"));
    assert!(reason(KeyFile::rotate(&path, "bills", now())).contains("no key \"bills\""));
    for alias in ["", "two words", "line\nbreak", "grün", &"x".repeat(256)] {
        assert!(reason(KeyFile::add(&path, alias, now())).contains("visible ASCII"), "{alias}");
    }
    assert!(KeyFile::add(&path, &"x".repeat(255), now()).is_ok());
}

#[test]
fn the_list_tells_versions_and_no_secret() {
    let (_directory, path) = world();
    KeyFile::rotate(&path, "orders", now() + Duration::from_secs(60)).unwrap();
    let expected = KeyFileEntry {
        name: "orders".into(),
        active_version: 2,
        versions: 2,
        active_since: now() + Duration::from_secs(60),
    };
    assert_eq!(KeyFile::list(&path).unwrap(), [expected]);
}

#[test]
fn the_text_of_a_file_is_as_documented() {
    let (_directory, path) = world();
    let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let body = format!("key orders\n  version 3 created 2015-08-30T12:36:00Z secret {secret}\n");
    write_checked(&path, &body);
    let (document, _) = read(&path).unwrap();
    assert_eq!(&document.keys[0].versions[0].secret[..], (0..32).collect::<Vec<u8>>());
    let expected = "moldau-keys 1\n\
                    # Anyone who can read this file can read every record under its keys.\n\
                    # It is changed by `moldau proxy keys`, which writes the last line.\n\
                    key orders\n  version 3 created 2015-08-30T12:36:00Z secret \
                    AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\ncrc32c e4363b91\n";
    assert_eq!(document.render().as_str(), expected);
}

#[test]
fn the_file_of_the_documentation_is_read() {
    let page = include_str!("../../../../../docs/formats.md");
    let text = page.split("```\n").find(|part| part.starts_with("moldau-keys")).unwrap();
    let (_directory, path) = world();
    fs::write(&path, text).unwrap();
    let listed = KeyFile::list(&path).unwrap();
    assert_eq!((listed[0].name.as_str(), listed[0].active_version), ("KEK_orders", 1));
}

#[test]
fn every_damaged_byte_of_a_file_is_noticed() {
    let (_directory, path) = world();
    let good = fs::read(&path).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 4;
        fs::write(&path, bad).unwrap();
        assert!(KeyFile::open(&path).is_err(), "byte {at} was changed");
        fs::write(&path, &good[..at]).unwrap();
        assert!(KeyFile::open(&path).is_err(), "cut at {at}");
    }
}

#[test]
fn a_text_that_breaks_a_rule_is_refused_by_line_without_its_words() {
    let (_directory, path) = world();
    let version = "version 1 created 2015-08-30T12:36:00Z secret";
    let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    for (body, expected) in [
        (format!("{version} {secret}\n"), "line 2: a version before any key"),
        (format!("key a\n{version} {secret}\n{version} {secret}\n"), "line 4: the versions"),
        (format!("key a\n{version} AAEC\n"), "line 3: the secret is not 32 bytes"),
        (format!("key a\n{version} {secret} x\n"), "line 3: not of the form"),
        ("key a\nversion 1 created today secret x\n".into(), "line 3: the time"),
        ("key a\nversion one created x secret x\n".into(), "line 3: the version is not"),
        ("key a\n".into(), "key \"a\" has no version"),
        (format!("key a\n{version} {secret}\nkey a\n"), "line 4: a name"),
        ("key a b\n".into(), "line 2: a key has one name"),
        ("secrets\n".into(), "line 2: neither"),
    ] {
        write_checked(&path, &body);
        let reason = reason(KeyFile::open(&path));
        assert!(reason.contains(expected) && !reason.contains(secret), "{reason}");
    }
    fs::write(&path, "moldau-keys 2\n").unwrap();
    assert!(reason(KeyFile::open(&path)).contains("does not know"));
    fs::write(&path, "secret").unwrap();
    assert!(reason(KeyFile::open(&path)).contains("init"));
    fs::write(&path, [0xff]).unwrap();
    assert!(reason(KeyFile::open(&path)).contains("not text"));
}

#[test]
fn a_wrapped_key_has_the_documented_layout() {
    let (_directory, path) = world();
    let wrapped = KeyFile::open(&path).unwrap().generate(&id("orders")).unwrap();
    assert_eq!(&wrapped.edek.0[..9], b"\x01\x06orders\x01");
    assert_eq!(wrapped.edek.0.len(), 9 + 12 + 48);
}

#[test]
fn every_changed_or_missing_byte_of_a_wrapped_key_is_noticed() {
    let (_directory, path) = world();
    KeyFile::rotate(&path, "orders", now()).unwrap();
    let kms = KeyFile::open(&path).unwrap();
    let good = kms.generate(&id("orders")).unwrap().edek.0;
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(kms.decrypt(&Edek(bad)).is_err(), "bit {bit} of byte {at} was changed");
        }
        let cut = kms.decrypt(&Edek(good[..at].into()));
        assert!(matches!(cut, Err(KmsError::DamagedEdek(_))), "cut at {at}");
    }
    let longer = [&good[..], &[0]].concat();
    assert!(matches!(kms.decrypt(&Edek(longer.into())), Err(KmsError::DamagedEdek(_))));
}

#[test]
fn a_key_of_the_same_name_in_another_file_opens_nothing() {
    let (_one, path) = world();
    let (_other, other) = world();
    let wrapped = KeyFile::open(&path).unwrap().generate(&id("orders")).unwrap();
    let opened = KeyFile::open(&other).unwrap().decrypt(&wrapped.edek);
    assert!(matches!(opened, Err(KmsError::DamagedEdek(_))));
}

/// Input that a producer may have forged is not read beyond its end.
#[test]
fn mutated_edeks_are_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..200_000 {
        let mut edek = [&b"\x01\x06orders\x01"[..], &[7; 60]].concat();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..edek.len());
            edek[at] = random.u8(..);
        }
        edek.truncate(random.usize(..=edek.len()));
        if let Ok(read) = Parts::read(&edek) {
            assert_eq!(read.associated.len() + 60, edek.len());
        }
    }
}
