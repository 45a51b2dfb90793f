//! Kroxylicious's `tls` sections. Stores of Java's own format and secrets that stand in the file
//! itself have no place in ours.

use super::foreign::{Foreign, Notes, Section};
use super::yaml::Map;

/// Placeholder for a secret that the other file holds itself; the operator replaces it.
const SECRET_FILE: &str = "FILE_WITH_THE_SECRET";

/// TLS towards clients.
pub(super) fn downstream(tls: Foreign, notes: &mut Notes) -> Map {
    let mut section = tls.section(notes);
    let mut map = Map::default();
    if let Some(key) = section.take_section(&["key"], notes) {
        identity(key, &mut map, notes);
    }
    if let Some(mut trust) = section.take_section(&["trust"], notes) {
        let path = trust.path_of("trustOptions");
        let options = trust.take_section(&["trustOptions"], notes);
        let wanted = options.and_then(|mut options| {
            let wanted = options.take_text(&["clientAuth"], notes);
            options.finish(notes);
            wanted
        });
        anchors(trust, &mut map, notes);
        // Trust without a word on clients demands their certificates.
        match wanted.as_deref().unwrap_or("REQUIRED") {
            "REQUIRED" => map.put("client_authentication", "required"),
            "REQUESTED" => map.put("client_authentication", "requested"),
            "NONE" => map.put("client_authentication", "none"),
            other => notes.add(path, format_args!("clientAuth {other} has no counterpart")),
        }
    }
    section.finish(notes);
    map
}

/// TLS towards the cluster.
pub(super) fn upstream(tls: Foreign, notes: &mut Notes) -> Map {
    let mut section = tls.section(notes);
    let mut map = Map::default();
    if let Some(key) = section.take_section(&["key"], notes) {
        identity(key, &mut map, notes);
    }
    if let Some(trust) = section.take_section(&["trust"], notes) {
        anchors(trust, &mut map, notes);
    }
    section.finish(notes);
    map
}

fn identity(mut key: Section, map: &mut Map, notes: &mut Notes) {
    map.put_some("certificate_file", key.take_text(&["certificateFile"], notes));
    map.put_some("key_file", key.take_text(&["privateKeyFile"], notes));
    let keys = ["key_store_file", "key_store_password_file"];
    store(&mut key, map, keys, "certificate_file", notes);
    if let Some(password) = key.take(&["keyPassword"]) {
        notes.add(password.path, "encrypted keys are not supported");
    }
    key.finish(notes);
}

fn anchors(mut trust: Section, map: &mut Map, notes: &mut Notes) {
    let keys = ["trust_store_file", "trust_store_password_file"];
    store(&mut trust, map, keys, "trust_file", notes);
    if trust.take_flag(&["insecure"], notes) == Some(true) {
        notes.add(trust.path_of("insecure"), "every certificate is verified");
    }
    trust.finish(notes);
}

/// A store, which is a PEM file, PKCS12, or Java's own format.
fn store(
    section: &mut Section,
    map: &mut Map,
    keys: [&'static str; 2],
    pem: &'static str,
    notes: &mut Notes,
) {
    let file = section.take_text(&["storeFile"], notes);
    let kind = section.take_text(&["storeType"], notes).unwrap_or_else(|| "JKS".to_owned());
    let password = section.take(&["storePassword"]);
    let Some(file) = file else { return };
    match kind.to_ascii_uppercase().as_str() {
        "PEM" => map.put(pem, file),
        "PKCS12" => {
            map.put(keys[0], file);
            let password = password.and_then(|password| secret_file(password, notes));
            map.put_some(keys[1], password);
        }
        other => {
            let remedy = "convert it with keytool -importkeystore -deststoretype PKCS12";
            notes.add(
                section.path_of("storeType"),
                format_args!("{other} is not supported; {remedy}"),
            );
        }
    }
}

/// The file of a secret. The note on a secret in the configuration itself leaves it out.
pub(super) fn secret_file(secret: Foreign, notes: &mut Notes) -> Option<String> {
    let mut section = secret.section(notes);
    let file = section.take_text(&["passwordFile", "filePath"], notes);
    let inline = section.take(&["password"]);
    let path = section.path.clone();
    section.finish(notes);
    if file.is_none() && inline.is_some() {
        notes.add(path, format_args!("the secret belongs in a file of its own, {SECRET_FILE}"));
        return Some(SECRET_FILE.to_owned());
    }
    file
}
