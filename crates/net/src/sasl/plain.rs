use zeroize::Zeroizing;

/// Message of a client with PLAIN (RFC 4616).
pub(super) struct PlainMessage<'a> {
    pub(super) user: &'a str,
    pub(super) password: &'a str,
}

impl<'a> PlainMessage<'a> {
    /// Reads `[authorization id] NUL user NUL password`.
    ///
    /// # Errors
    /// Kafka's words for what is wrong, or `None` where it uses those for any broken message.
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Option<&'static str>> {
        let text = std::str::from_utf8(message).map_err(|_| None)?;
        let mut parts = text.split('\0');
        let (Some(authorization_id), Some(user), Some(password), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(None);
        };
        if user.is_empty() {
            return Err(Some("Authentication failed: username not specified"));
        }
        if password.is_empty() {
            return Err(Some("Authentication failed: password not specified"));
        }
        if !authorization_id.is_empty() && authorization_id != user {
            return Err(Some(OTHER_AUTHORIZATION_ID));
        }
        Ok(Self { user, password })
    }
}

/// The one message of a client.
pub(super) fn message(user: &str, password: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(format!("\0{user}\0{password}").into_bytes())
}

pub(super) const OTHER_AUTHORIZATION_ID: &str =
    "Authentication failed: Client requested an authorization id that is different from username";
