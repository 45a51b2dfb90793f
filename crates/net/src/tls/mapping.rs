//! From a certificate's subject to a principal: Kafka's `ssl.principal.mapping.rules` (KIP-371).

use regex::Regex;
use x509_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::X509Name;

use crate::error::TlsError;
use crate::principal::Principal;

/// Rules that turn the distinguished name of a client's certificate into a user name. The first
/// that matches counts; by default the whole name in RFC 2253 form is the user name.
#[derive(Clone, Debug)]
pub struct PrincipalMapping {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    Default,
    Replace { pattern: Regex, replacement: Vec<Piece>, case: Case },
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Group(usize),
}

#[derive(Clone, Copy, Debug)]
enum Case {
    AsIs,
    Lower,
    Upper,
}

impl Default for PrincipalMapping {
    fn default() -> Self {
        Self { rules: vec![Rule::Default] }
    }
}

impl PrincipalMapping {
    /// Reads rules separated by commas, each `DEFAULT` or `RULE:pattern/replacement/[LU]`. A
    /// pattern has to match the whole name; `$1` in a replacement is its first group.
    ///
    /// # Errors
    /// [`TlsError::MappingRule`].
    pub fn parse(text: &str) -> Result<Self, TlsError> {
        let mut rules = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let (rule, behind) = Rule::parse(rest)?;
            rules.push(rule);
            let behind = behind.trim_start();
            rest = match behind.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None if behind.is_empty() => behind,
                None => return Err(invalid(rest, "another rule follows without a comma")),
            };
        }
        Ok(if rules.is_empty() { Self::default() } else { Self { rules } })
    }

    /// The principal of the certificate in `der`.
    ///
    /// # Errors
    /// [`TlsError::Certificate`] for what is none, [`TlsError::NoMappingRule`].
    pub fn principal(&self, der: &[u8]) -> Result<Principal, TlsError> {
        let (_, certificate) = X509Certificate::from_der(der)
            .map_err(|_| TlsError::Certificate(rustls::CertificateError::BadEncoding.into()))?;
        let name = distinguished_name(certificate.subject());
        match self.rules.iter().find_map(|rule| rule.apply(&name)) {
            Some(user) => Ok(Principal::user(&user)),
            None => Err(TlsError::NoMappingRule { name }),
        }
    }
}

impl Rule {
    /// The first rule in `text`, and what follows it.
    fn parse(text: &str) -> Result<(Self, &str), TlsError> {
        if let Some(behind) = text.strip_prefix("DEFAULT") {
            return Ok((Self::Default, behind));
        }
        let body = text.strip_prefix("RULE:");
        let body = body.ok_or_else(|| invalid(text, "it is neither DEFAULT nor RULE:..."))?;
        let incomplete = || invalid(text, "it is not of the form RULE:pattern/replacement/");
        let (pattern, body) = split_at_slash(body).ok_or_else(incomplete)?;
        let (replacement, behind) = split_at_slash(body).ok_or_else(incomplete)?;
        let (case, behind) = match behind.as_bytes().first() {
            Some(b'L') => (Case::Lower, behind.get(1..)),
            Some(b'U') => (Case::Upper, behind.get(1..)),
            _ => (Case::AsIs, Some(behind)),
        };
        let whole = format!("^(?:{pattern})$");
        let pattern = Regex::new(&whole).map_err(|error| invalid(text, &error.to_string()))?;
        let replacement = pieces(replacement, pattern.captures_len() - 1)
            .ok_or_else(|| invalid(text, "a $ in the replacement names no group"))?;
        Ok((Self::Replace { pattern, replacement, case }, behind.unwrap_or_default()))
    }

    fn apply(&self, name: &str) -> Option<String> {
        let Self::Replace { pattern, replacement, case } = self else {
            return Some(name.to_owned());
        };
        let groups = pattern.captures(name)?;
        let group = |index| groups.get(index).map_or("", |found| found.as_str());
        let mapped: String = replacement
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Group(index) => group(*index),
            })
            .collect();
        Some(match case {
            Case::AsIs => mapped,
            Case::Lower => mapped.to_lowercase(),
            Case::Upper => mapped.to_uppercase(),
        })
    }
}

fn invalid(rule: &str, reason: &str) -> TlsError {
    TlsError::MappingRule { rule: rule.to_owned(), reason: reason.to_owned() }
}

/// What stands before and behind the first slash that no backslash precedes.
fn split_at_slash(text: &str) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            '/' if !escaped => return Some((text.get(..at)?, text.get(at + 1..)?)),
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    None
}

/// The pieces of a replacement, as Java reads it: as many digits make a group's number as name a
/// group, a number beyond all groups is text, and a backslash takes the meaning from what follows.
fn pieces(replacement: &str, group_count: usize) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut characters = replacement.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => text.push(characters.next()?),
            '$' => {
                let digit = |c: &char| c.to_digit(10).and_then(|d| usize::try_from(d).ok());
                let mut group = characters.next().as_ref().and_then(digit)?;
                while let Some(next) = characters.peek().and_then(digit)
                    && group * 10 + next <= group_count
                {
                    group = group * 10 + next;
                    characters.next();
                }
                if group > group_count {
                    text.push_str(&format!("${group}"));
                } else {
                    pieces.push(Piece::Text(std::mem::take(&mut text)));
                    pieces.push(Piece::Group(group));
                }
            }
            other => text.push(other),
        }
    }
    pieces.push(Piece::Text(text));
    Some(pieces)
}

/// The name as Java's `X500Principal.getName()` gives it, which Kafka's rules and ACLs use: the
/// most specific part first, and types without a keyword in RFC 2253 as numbers with the value's
/// encoding in hexadecimal.
fn distinguished_name(name: &X509Name<'_>) -> String {
    let mut parts: Vec<String> = name
        .iter()
        .map(|part| {
            let attributes = part.iter().map(|attribute| {
                let kind = attribute.attr_type().to_id_string();
                let value = attribute.attr_value();
                let keyword = KEYWORDS.iter().find(|(number, _)| *number == kind);
                match keyword.zip(text_of(value)) {
                    Some(((_, keyword), text)) => format!("{keyword}={}", escaped(&text)),
                    None => format!("{kind}=#{}", hexadecimal(value)),
                }
            });
            attributes.collect::<Vec<_>>().join("+")
        })
        .collect();
    parts.reverse();
    parts.join(",")
}

fn text_of(value: &Any<'_>) -> Option<String> {
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String => {
            Some(String::from_utf8_lossy(value.data).into_owned())
        }
        Tag::T61String | Tag::GeneralString => {
            Some(value.data.iter().map(|byte| char::from(*byte)).collect())
        }
        Tag::BmpString => {
            let (units, _) = value.data.as_chunks::<2>();
            let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            Some(String::from_utf16_lossy(&units))
        }
        _ => None,
    }
}

/// Escapes as Java does, which goes beyond RFC 2253, section 2.4: `=` too, so that no value looks
/// like another attribute to a rule, `#` wherever it stands, and a line break at either end.
fn escaped(text: &str) -> String {
    let leading = text.len() - text.trim_start_matches(BLANKS).len();
    let trailing = text.trim_end_matches(BLANKS).len();
    let mut out = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        match character {
            ',' | '=' | '+' | '<' | '>' | '#' | ';' | '"' | '\\' => out.extend(['\\', character]),
            ' ' | '\r' if at < leading || at >= trailing => out.extend(['\\', character]),
            '\0' => out.push_str("\\00"),
            other => out.push(other),
        }
    }
    out
}

/// The value's DER encoding.
fn hexadecimal(value: &Any<'_>) -> String {
    let mut der = vec![u8::try_from(value.tag().0).unwrap_or(u8::MAX)];
    let length = value.data.len().to_be_bytes();
    match u8::try_from(value.data.len()) {
        Ok(short @ ..0x80) => der.push(short),
        _ => {
            let digits = length.iter().skip_while(|byte| **byte == 0);
            let count = u8::try_from(digits.clone().count()).unwrap_or(u8::MAX);
            der.push(0x80 | count);
            der.extend(digits);
        }
    }
    der.extend_from_slice(value.data);
    der.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is escaped at the ends of a value.
const BLANKS: [char; 2] = [' ', '\r'];

/// Attribute types with a keyword in RFC 2253, section 2.3.
const KEYWORDS: [(&str, &str); 9] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
];

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn apply(rules: &str, name: &str) -> Option<String> {
        PrincipalMapping::parse(rules).unwrap().rules.iter().find_map(|rule| rule.apply(name))
    }

    #[test]
    fn rules_of_kafkas_documentation_map_as_documented() {
        let rules = "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/,\
                     RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L,\
                     RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT";
        for (name, user) in [
            (
                "CN=serviceuser,OU=ServiceUsers,O=Unknown,L=Unknown,ST=Unknown,C=Unknown",
                "serviceuser",
            ),
            ("CN=adminUser,OU=Admin,O=Unknown,L=Unknown,ST=Unknown,C=Unknown", "adminuser@admin"),
            ("cn=Somebody.X,o=y", "somebody.x"),
            ("OU=only", "OU=only"),
        ] {
            assert_eq!(apply(rules, name).as_deref(), Some(user), "{name}");
        }
    }

    #[test]
    fn replacement_is_read_as_java_reads_it() {
        for (rules, mapped) in [
            ("RULE:CN=(a)(b)/$2-$1-$0/U", "B-A-CN=AB"),
            ("RULE:CN=(a)(b)/$11$3\\$1/", "a1$3$1"),
            ("RULE:CN=ab/x\\/y/", "x/y"),
            ("RULE:CN=.*//", ""),
        ] {
            assert_eq!(apply(rules, "CN=ab").as_deref(), Some(mapped), "{rules}");
        }
    }

    #[test]
    fn name_that_no_rule_matches_is_refused() {
        assert_eq!(apply("RULE:CN=a/x/", "CN=ab"), None, "a pattern matches the whole name");
        assert_eq!(apply("", "CN=ab").as_deref(), Some("CN=ab"));
    }

    #[test]
    fn broken_rules_are_named() {
        for rules in
            ["DEFAUL", "RULE:a/b", "RULE:(/x/", "RULE:a/$/", "RULE:a/b/Q", "DEFAULT DEFAULT"]
        {
            let error = PrincipalMapping::parse(rules).unwrap_err();
            assert!(matches!(error, TlsError::MappingRule { .. }), "{rules}: {error}");
        }
    }

    #[test]
    fn name_in_a_certificate_is_given_as_java_gives_it() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CountryName, "CZ");
        params.distinguished_name.push(DnType::OrganizationName, "Moldau, z. s.");
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        params.distinguished_name.push(email, "a@b");
        params.distinguished_name.push(DnType::CommonName, "alice");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let principal = PrincipalMapping::default().principal(certificate.der()).unwrap();
        let name = "CN=alice,1.2.840.113549.1.9.1=#0c03614062,O=Moldau\\, z. s.,C=CZ";
        assert_eq!(principal, Principal::user(name));
        assert!(PrincipalMapping::default().principal(b"no certificate").is_err());
    }

    /// A client whose certificate carries `OU="x CN=admin"` was taken for admin by the last rule of
    /// Kafka's documentation, which takes the last `CN=` of the name.
    #[test]
    fn value_that_looks_like_an_attribute_is_not_taken_for_one() {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationalUnitName, "x CN=admin");
        params.distinguished_name.push(DnType::CommonName, "mallory");
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let principal = |rules: &str| {
            PrincipalMapping::parse(rules).unwrap().principal(certificate.der()).unwrap()
        };
        assert_eq!(principal("DEFAULT"), Principal::user("CN=mallory,OU=x CN\\=admin"));
        let rules = "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L";
        assert_eq!(principal(rules), Principal::user("mallory"));
    }

    #[test]
    fn special_characters_of_a_name_are_escaped() {
        assert_eq!(escaped(" #a,b+c\"d\\e<f>g;h  "), "\\ \\#a\\,b\\+c\\\"d\\\\e\\<f\\>g\\;h\\ \\ ");
        assert_eq!(escaped("#x#=y"), "\\#x\\#\\=y");
        assert_eq!(escaped("\ra\rb\r"), "\\\ra\rb\\\r");
        assert_eq!(escaped("  "), "\\ \\ ");
    }
}
