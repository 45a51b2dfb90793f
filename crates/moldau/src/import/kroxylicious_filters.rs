//! Kroxylicious's filters as ours.

use std::collections::BTreeMap;
use std::path::Path;

use super::foreign::{Foreign, Notes, Section};
use super::kroxylicious_acl::rules;
use super::kroxylicious_tls::secret_file;
use super::kroxylicious_validation::record_validation;
use super::yaml::Map;
use crate::config;

/// What the filters of a virtual cluster become.
#[derive(Debug, Default)]
pub(super) struct Policies {
    pub(super) filters: Vec<Map>,
    /// SASL that ends at the proxy is no filter of ours but a key of the virtual cluster.
    pub(super) terminate: Option<Map>,
}

/// Translates a list of filters: names of definitions, or, before there were these, the filters.
pub(super) fn policies(
    list: Vec<Foreign>,
    definitions: &BTreeMap<String, Foreign>,
    path: &str,
    notes: &mut Notes,
) -> Policies {
    let mut policies = Policies::default();
    for item in list {
        let definition = match item.value.as_str() {
            Some(name) => match definitions.get(name) {
                Some(found) => Foreign { path: found.path.clone(), value: found.value.clone() },
                None => {
                    notes.add(path, format_args!("{name} is not defined"));
                    continue;
                }
            },
            None => item,
        };
        policies.add(definition.section(notes), notes);
    }
    policies
}

impl Policies {
    fn add(&mut self, mut definition: Section, notes: &mut Notes) {
        definition.take(&["name"]);
        let path = definition.path.clone();
        let kind = definition.take_text(&["type"], notes).unwrap_or_default();
        let config = definition.take(&["config"]);
        definition.finish(notes);
        let config_path = format!("{path}.config");
        let config = config.unwrap_or(Foreign { path: config_path, value: serde_json::json!({}) });
        // The class may stand with its package, and the factory's name in place of the filter's.
        let short = kind.rsplit('.').next().unwrap_or_default();
        let filter = match short {
            "RecordEncryption" | "EnvelopeEncryption" => {
                Some(("record_encryption", record_encryption(config, notes)))
            }
            "MultiTenant" | "MultiTenantTransformationFilterFactory" => {
                Some(("multi_tenant", multi_tenant(config, notes)))
            }
            "Authorization" => Some(("authorization", authorization(config, notes))),
            "RecordValidation" | "ProduceValidationFilterFactory" => {
                Some(("record_validation", record_validation(config, notes)))
            }
            "SaslTermination" => {
                self.terminate = Some(sasl_termination(config, notes));
                None
            }
            "SaslInspection" => {
                sasl_inspection(config, notes);
                None
            }
            _ => {
                notes.add(path, format_args!("the filter {kind:?} has no counterpart"));
                None
            }
        };
        if let Some((name, settings)) = filter {
            let mut entry = Map::default();
            entry.put(name, settings);
            self.filters.push(entry);
        }
    }
}

fn multi_tenant(config: Foreign, notes: &mut Notes) -> Map {
    let mut config = config.section(notes);
    let mut map = Map::default();
    let separator = config.take_text(&["prefixResourceNameSeparator"], notes);
    let separator = separator.unwrap_or_else(|| "-".to_owned());
    map.put("prefix", format!("$(virtualClusterName){separator}"));
    config.finish(notes);
    map
}

/// Rules are read from the file that is named, and stand in the configuration itself. Where they
/// cannot be had nothing is allowed.
fn authorization(config: Foreign, notes: &mut Notes) -> Map {
    let mut config = config.section(notes);
    let authorizer = config.take_text(&["authorizer"], notes).unwrap_or_default();
    if authorizer.rsplit('.').next() != Some("AclAuthorizerService") {
        let what =
            format_args!("{authorizer:?} has no counterpart; without rules nothing is allowed");
        notes.add(config.path_of("authorizer"), what);
    }
    let mut lines = Vec::new();
    if let Some(mut settings) = config.take_section(&["authorizerConfig"], notes) {
        if let Some(file) = settings.take_text(&["aclFile"], notes) {
            match config::text(Path::new(&file)) {
                Ok(text) => lines = rules(&file, &text, notes),
                Err(error) => {
                    let what = format_args!("{error}; without rules nothing is allowed");
                    notes.add(settings.path_of("aclFile"), what);
                }
            }
        }
        settings.finish(notes);
    }
    config.finish(notes);
    let mut map = Map::default();
    map.put("rules", lines);
    map
}

fn record_encryption(config: Foreign, notes: &mut Notes) -> Map {
    let mut config = config.section(notes);
    let mut map = Map::default();
    let selector = config.take_text(&["selector"], notes);
    if let Some(other) = selector.filter(|it| !it.ends_with("TemplateKekSelector")) {
        notes.add(config.path_of("selector"), format_args!("{other} has no counterpart"));
    }
    let template = config.take_section(&["selectorConfig"], notes).and_then(|mut selector| {
        let template = selector.take_text(&["template"], notes);
        selector.finish(notes);
        template
    });
    // Before 0.19 variables stood in braces.
    let template = template.unwrap_or_default().replace("${topicName}", "$(topicName)");
    map.put("template", template);
    let policy = config.take_text(&["unresolvedKeyPolicy"], notes);
    match policy.as_deref().unwrap_or("PASSTHROUGH_UNENCRYPTED") {
        "PASSTHROUGH_UNENCRYPTED" => map.put("unresolved_key", "passthrough"),
        _ => map.put("unresolved_key", "reject"),
    }
    if let Some(mut experimental) = config.take_section(&["experimental"], notes) {
        for (key, theirs) in [
            ("records_per_key_max", "maxEncryptionsPerDek"),
            ("sealing_key_refresh_s", "encryptionDekRefreshAfterWriteSeconds"),
            ("sealing_key_expiry_s", "encryptionDekExpireAfterWriteSeconds"),
            ("opening_keys_max", "decryptedDekCacheSize"),
        ] {
            map.put_some(key, experimental.take_number(&[theirs], notes));
        }
        experimental.finish(notes);
    }
    let path = config.path_of("kms");
    let kms = config.take_text(&["kms"], notes).unwrap_or_default();
    let settings = config.take_section(&["kmsConfig"], notes);
    if let Some(service) = settings.and_then(|settings| service(&kms, settings, notes)) {
        map.put("kms", service);
    } else {
        notes.add(path, format_args!("the service {kms:?} has no counterpart"));
    }
    config.finish(notes);
    map
}

/// A key management service.
fn service(kms: &str, mut settings: Section, notes: &mut Notes) -> Option<Map> {
    let kms = kms.rsplit('.').next().unwrap_or_default();
    let (name, map) = match kms.trim_end_matches("Service").trim_end_matches("Kms") {
        "Vault" => ("vault", vault(&mut settings, notes)),
        "Aws" | "AWS" => ("aws", aws(&mut settings, notes)),
        _ => return None,
    };
    settings.finish(notes);
    let mut service = Map::default();
    service.put(name, map);
    Some(service)
}

fn vault(settings: &mut Section, notes: &mut Notes) -> Map {
    let mut map = Map::default();
    map.put_some("url", settings.take_text(&["vaultTransitEngineUrl"], notes));
    let mut auth = Map::default();
    let token = settings.take(&["vaultToken"]);
    auth.put_some("token_file", token.and_then(|token| secret_file(token, notes)));
    map.put("auth", auth);
    map.put_some("ca_file", ca_file(settings, notes));
    map
}

fn aws(settings: &mut Section, notes: &mut Notes) -> Map {
    let mut map = Map::default();
    map.put_some("region", settings.take_text(&["region"], notes));
    map.put_some("url", settings.take_text(&["endpointUrl"], notes));
    let mut auth = Map::default();
    let long_term = settings.take_section(&["longTermCredentials", "longTerm"], notes);
    if let Some(mut theirs) = long_term {
        auth.put("long_term", long_term_credentials(&mut theirs, notes));
        theirs.finish(notes);
    } else if let Some(metadata) = settings.take(&["ec2MetadataCredentials", "ec2Metadata"]) {
        let mut theirs = metadata.section(notes);
        theirs.take(&["iamRole"]);
        let mut own = Map::default();
        own.put_some("url", theirs.take_text(&["metadataEndpoint"], notes));
        theirs.finish(notes);
        auth.put("instance_metadata", own);
    } else if let Some(mut theirs) = settings.take_section(&["webIdentityCredentials"], notes) {
        let mut own = Map::default();
        own.put_some("role_arn", theirs.take_text(&["roleArn"], notes));
        own.put_some("session_name", theirs.take_text(&["roleSessionName"], notes));
        own.put_some("token_file", theirs.take_text(&["webIdentityTokenFile"], notes));
        own.put_some("sts_url", theirs.take_text(&["stsEndpointUrl"], notes));
        theirs.finish(notes);
        auth.put("web_identity", own);
    } else {
        // Before there was a choice, both keys stood beside the region.
        auth.put("long_term", long_term_credentials(settings, notes));
    }
    map.put("auth", auth);
    map.put_some("ca_file", ca_file(settings, notes));
    map
}

/// An access key. Its id is not secret: it may come from the other file itself.
fn long_term_credentials(theirs: &mut Section, notes: &mut Notes) -> Map {
    let mut own = Map::default();
    if let Some(id) = theirs.take_section(&["accessKeyId", "accessKey"], notes) {
        let mut id = id;
        let inline = id.take_text(&["password"], notes);
        if inline.is_none() {
            notes.add(&id.path, "the id of the key belongs into the configuration");
        }
        own.put("access_key_id", inline.unwrap_or_else(|| "ACCESS_KEY_ID".to_owned()));
    }
    let secret = theirs.take(&["secretAccessKey", "secretKey"]);
    own.put_some("secret_access_key_file", secret.and_then(|it| secret_file(it, notes)));
    own
}

/// Authorities to trust; only PEM is read.
fn ca_file(settings: &mut Section, notes: &mut Notes) -> Option<String> {
    let mut tls = settings.take_section(&["tls"], notes)?;
    let mut trust = tls.take_section(&["trust"], notes);
    let file = trust.as_mut().and_then(|trust| {
        let is_pem = trust.take_text(&["storeType"], notes).as_deref() == Some("PEM");
        let file = trust.take_text(&["storeFile"], notes);
        if !is_pem {
            notes.add(trust.path_of("storeType"), "only PEM is read here");
        }
        file.filter(|_| is_pem)
    });
    if let Some(trust) = trust {
        trust.finish(notes);
    }
    tls.finish(notes);
    file
}

/// The principal of a client becomes known here with any mechanism.
fn sasl_inspection(config: Foreign, notes: &mut Notes) {
    let mut config = config.section(notes);
    config.take(&["enabledMechanisms"]);
    if config.take_flag(&["requireAuthentication"], notes) == Some(true) {
        notes.add(config.path_of("requireAuthentication"), "use `authorization`");
    }
    config.finish(notes);
}

fn sasl_termination(config: Foreign, notes: &mut Notes) -> Map {
    let mut config = config.section(notes);
    let (mut map, mut more) = (Map::default(), Map::default());
    let mut mechanisms = Vec::new();
    let list = config.take(&["mechanisms"]).map(|list| list.list(notes)).unwrap_or_default();
    for item in list {
        let mut item = item.section(notes);
        let path = item.path.clone();
        let name = item.take_text(&["mechanism", "name", "type"], notes).unwrap_or_default();
        let settings = item.take_section(&["config"], notes);
        if name == "OAUTHBEARER" {
            let mut settings = settings.unwrap_or(item);
            more.put("oauthbearer", oauthbearer(&mut settings, notes));
            settings.finish(notes);
        } else {
            notes.add(path, format_args!("users of {name} belong in a users_file"));
            more.put("users_file", "USERS_FILE");
        }
        mechanisms.push(name);
    }
    config.take(&["fixedAuthDelay"]);
    config.finish(notes);
    map.put("mechanisms", mechanisms);
    map.append(more);
    map
}

fn oauthbearer(settings: &mut Section, notes: &mut Notes) -> Map {
    let mut map = Map::default();
    for (key, theirs) in [
        ("jwks_url", "jwksEndpointUrl"),
        ("issuer", "expectedIssuer"),
        ("audience", "expectedAudience"),
        ("principal_claim", "subClaimName"),
    ] {
        map.put_some(key, settings.take_text(&[theirs], notes));
    }
    map
}
