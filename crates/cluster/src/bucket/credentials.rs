//! Who asks a store: access keys, or the role of the machine.

use std::fmt;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};

use crate::{Answer, Error};

/// Who asks. Keys are never shown.
#[derive(Clone)]
pub struct Credentials(Source);

#[derive(Clone)]
enum Source {
    Keys {
        access_key: String,
        secret_key: String,
        session_token: Option<String>,
    },
    /// Where the machine, the container or the pod tells keys of its role, which change.
    Role(Vec<(AmazonS3ConfigKey, String)>),
}

impl Credentials {
    /// Access key and secret key, and the token of keys that are valid for a while.
    #[must_use]
    pub fn keys(access_key: &str, secret_key: &str, session_token: Option<&str>) -> Self {
        Self(Source::Keys {
            access_key: access_key.to_owned(),
            secret_key: secret_key.to_owned(),
            session_token: session_token.map(str::to_owned),
        })
    }

    /// What the variables of AWS say: keys, the role of a pod or of a container, or else that of
    /// the machine. The caller looks up the variables.
    ///
    /// # Errors
    /// [`Error::Settings`] if there is one key without the other.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Answer<Self> {
        let variable = |name: &str| variable(name).filter(|text| !text.is_empty());
        match (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            (Some(access_key), Some(secret_key)) => {
                let session_token = variable("AWS_SESSION_TOKEN");
                Ok(Self(Source::Keys { access_key, secret_key, session_token }))
            }
            (None, None) => {
                let told = ROLES.iter().filter_map(|(name, key)| Some((*key, variable(name)?)));
                Ok(Self(Source::Role(told.collect())))
            }
            _ => Err(Error::Settings(
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY need one another".into(),
            )),
        }
    }

    /// The keys of a profile in a credentials file of AWS.
    ///
    /// # Errors
    /// [`Error::Settings`] names the line, but does not show it.
    pub fn of_file(text: &str, profile: &str) -> Answer<Self> {
        let wrong = |text: String| Error::Settings(format!("the file of keys: {text}"));
        let (mut is_ours, mut found) = (false, false);
        let (mut access_key, mut secret_key, mut session_token) = (None, None, None);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_ours = name.trim() == profile;
                found |= is_ours;
                continue;
            }
            let malformed = || wrong(format!("line {number} has no name and value"));
            let (name, value) = line.split_once('=').ok_or_else(malformed)?;
            let slot = match name.trim() {
                "aws_access_key_id" => &mut access_key,
                "aws_secret_access_key" => &mut secret_key,
                "aws_session_token" => &mut session_token,
                // Files of AWS hold settings of other programs as well.
                _ => continue,
            };
            if is_ours {
                *slot = Some(value.trim().to_owned());
            }
        }
        if !found {
            return Err(wrong(format!("it has no profile {profile}")));
        }
        let lacks = |name: &str| wrong(format!("profile {profile} has no {name}"));
        Ok(Self(Source::Keys {
            access_key: access_key.ok_or_else(|| lacks("aws_access_key_id"))?,
            secret_key: secret_key.ok_or_else(|| lacks("aws_secret_access_key"))?,
            session_token,
        }))
    }

    pub(super) fn give(&self, builder: AmazonS3Builder) -> AmazonS3Builder {
        match &self.0 {
            Source::Keys { access_key, secret_key, session_token } => {
                let builder =
                    builder.with_access_key_id(access_key).with_secret_access_key(secret_key);
                match session_token {
                    Some(token) => builder.with_token(token),
                    None => builder,
                }
            }
            Source::Role(told) => {
                told.iter().fold(builder, |builder, (key, value)| builder.with_config(*key, value))
            }
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Keys { .. } => "keys",
            Source::Role(_) => "role",
        })
    }
}

/// Variables that AWS sets in pods and containers; they name places, not keys.
const ROLES: &[(&str, AmazonS3ConfigKey)] = &[
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(credentials: Answer<Credentials>) -> (String, String, Option<String>) {
        match credentials.unwrap().0 {
            Source::Keys { access_key, secret_key, session_token } => {
                (access_key, secret_key, session_token)
            }
            Source::Role(_) => panic!("a role"),
        }
    }

    #[test]
    fn a_file_gives_the_keys_of_its_profile() {
        let text = "# keys\n[other]\naws_access_key_id = A\naws_secret_access_key=B\n\n\
            [ moldau ]\r\naws_access_key_id=C\nregion = eu\n aws_secret_access_key = D/+=\n\
            aws_session_token = E\n[last]\naws_access_key_id = F\n";
        let expected = ("C".to_owned(), "D/+=".to_owned(), Some("E".to_owned()));
        assert_eq!(parts(Credentials::of_file(text, "moldau")), expected);
        assert_eq!(parts(Credentials::of_file(text, "other")).2, None);
        for (text, profile) in [(text, "last"), (text, "none"), ("[a]\nhunter2", "a")] {
            let error = Credentials::of_file(text, profile).unwrap_err();
            assert!(matches!(error, Error::Settings(_)));
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn variables_give_both_keys_or_a_role() {
        let of = |variables: &'static [(&str, &str)]| {
            Credentials::of_environment(|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let both = [("AWS_ACCESS_KEY_ID", "A"), ("AWS_SECRET_ACCESS_KEY", "B")];
        let both: &'static [_] = Box::leak(Box::new(both));
        assert_eq!(parts(of(both)), ("A".to_owned(), "B".to_owned(), None));
        assert!(matches!(of(&[("AWS_ACCESS_KEY_ID", "A")]), Err(Error::Settings(_))));
        let role = of(&[("AWS_ROLE_ARN", "arn"), ("AWS_ACCESS_KEY_ID", "")]).unwrap();
        match role.0 {
            Source::Role(told) => assert_eq!(told, [(AmazonS3ConfigKey::RoleArn, "arn".into())]),
            Source::Keys { .. } => panic!("keys"),
        }
    }
}
