//! What a client says of its software (KIP-511).

use crate::messages::ApiVersionsRequest;

/// The version of ApiVersions from which clients name their software.
const NAMED_SINCE: i16 = 3;

impl ApiVersionsRequest {
    /// Whether the name and the version of the client's software are words of letters and digits,
    /// with dots and dashes within, as a broker demands where `version` of the request has them.
    #[must_use]
    pub fn names_software(&self, version: i16) -> bool {
        let words = [&self.client_software_name, &self.client_software_version];
        version < NAMED_SINCE || words.into_iter().all(|word| is_word(word))
    }
}

fn is_word(word: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    word.bytes().all(inner) && edge(word.bytes().next()) && edge(word.bytes().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_has_a_name_and_a_version_from_version_3_on() {
        let of = |name: &str, version: &str| ApiVersionsRequest {
            client_software_name: name.to_owned(),
            client_software_version: version.to_owned(),
            ..ApiVersionsRequest::default()
        };
        for (name, version) in [("apache-kafka-java", "4.3.1"), ("a", "1-rc.2")] {
            assert!(of(name, version).names_software(3), "{name} {version}");
        }
        for (name, version) in [("", "1"), ("a", ""), ("-a", "1"), ("a.", "1"), ("a b", "1")] {
            assert!(!of(name, version).names_software(3), "{name} {version}");
            assert!(of(name, version).names_software(2), "{name} {version}");
        }
    }
}
