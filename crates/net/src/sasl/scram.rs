//! SCRAM (RFC 5802, RFC 7677) as Kafka does it: without channel binding, names as they are.
//!
//! ```text
//! client first   n,,n=user,r=<client nonce>
//! server first   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
//! client final   c=biws,r=<both nonces>,p=<proof>
//! server final   v=<server signature>
//! ```

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use aws_lc_rs::{constant_time, digest, hmac, pbkdf2, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::mechanism::Mechanism;
use crate::error::SaslError;

/// Fewest iterations that servers demand and clients accept; Kafka's minimum for both mechanisms.
pub(super) const ITERATIONS_MIN: u32 = 4096;

/// Most iterations that a client performs on the word of a server: a fraction of a second. Kafka's
/// own limit for what it stores is 16,384.
const ITERATIONS_MAX: u32 = 250_000;

/// A server's verifier of a user's password. The password does not follow from it, except by
/// guessing.
#[derive(Clone, Eq, PartialEq)]
pub struct ScramCredential {
    /// Random bytes, one's own for each user.
    pub salt: Vec<u8>,
    /// Recognises the client's proof.
    pub stored_key: Vec<u8>,
    /// Proves to the client that the server knows this credential.
    pub server_key: Vec<u8>,
    /// Rounds of PBKDF2.
    pub iterations: u32,
}

/// A text is not a credential in Kafka's form.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("not of the form salt=...,stored_key=...,server_key=...,iterations=..., 4096 at least")]
pub struct InvalidScramCredential;

impl ScramCredential {
    /// The credential of a password. `mechanism` is one of SCRAM; any other counts as
    /// SCRAM-SHA-256.
    #[must_use]
    pub fn derive(mechanism: Mechanism, password: &str, salt: &[u8], iterations: u32) -> Self {
        let salted = salted_password(mechanism, password, salt, iterations);
        Self::from_salted_password(mechanism, &salted, salt, iterations)
    }

    /// The credential of a password that the client has salted, as AlterUserScramCredentials
    /// carries it.
    #[must_use]
    pub fn from_salted_password(
        mechanism: Mechanism,
        salted_password: &[u8],
        salt: &[u8],
        iterations: u32,
    ) -> Self {
        let algorithms = Algorithms::of(mechanism);
        let client_key = algorithms.hmac(salted_password, &[CLIENT_KEY]);
        Self {
            salt: salt.to_vec(),
            stored_key: algorithms.hash(client_key.as_ref()),
            server_key: algorithms.hmac(salted_password, &[SERVER_KEY]).as_ref().to_vec(),
            iterations,
        }
    }

    /// A salt for a credential, in the form that Kafka's own tools give it.
    #[must_use]
    pub fn random_salt() -> Vec<u8> {
        let mut random = [0; SALT_BYTES];
        fill_random(&mut random);
        salt_text(&random)
    }
}

/// Kafka's text form, as in `SCRAM-SHA-256=[...]` and in its metadata.
impl FromStr for ScramCredential {
    type Err = InvalidScramCredential;

    fn from_str(text: &str) -> Result<Self, InvalidScramCredential> {
        let (mut salt, mut stored_key, mut server_key, mut iterations) = (None, None, None, None);
        let text = text.trim();
        let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        for field in inner.unwrap_or(text).split(',') {
            let (name, value) = field.trim().split_once('=').ok_or(InvalidScramCredential)?;
            let bytes = || STANDARD.decode(value).map_err(|_| InvalidScramCredential);
            match name {
                "salt" => salt = Some(bytes()?),
                "stored_key" => stored_key = Some(bytes()?),
                "server_key" => server_key = Some(bytes()?),
                "iterations" => iterations = value.parse().ok(),
                _ => return Err(InvalidScramCredential),
            }
        }
        match (salt, stored_key, server_key, iterations) {
            (
                Some(salt),
                Some(stored_key),
                Some(server_key),
                Some(iterations @ ITERATIONS_MIN..),
            ) => Ok(Self { salt, stored_key, server_key, iterations }),
            _ => Err(InvalidScramCredential),
        }
    }
}

/// Shows no keys.
impl fmt::Debug for ScramCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCredential")
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

/// The server's side of one exchange, after its first message.
pub(super) struct ServerExchange {
    mechanism: Mechanism,
    user: String,
    known: bool,
    credential: ScramCredential,
    /// The value that the client's `c=` must repeat.
    header: String,
    nonce: String,
    /// The client's first message without its header, and the server's first message.
    said: String,
}

impl ServerExchange {
    /// Takes the client's first message; `look_up` gives the user's credential and whether there
    /// is such a user. Gives the server's first message too.
    pub(super) fn first(
        mechanism: Mechanism,
        message: &[u8],
        server_nonce: &str,
        look_up: impl FnOnce(&str) -> (ScramCredential, bool),
    ) -> Result<(Self, String), Refusal> {
        let message = std::str::from_utf8(message).map_err(|_| Refusal::Malformed)?;
        let first = ClientFirst::parse(message).ok_or(Refusal::Malformed)?;
        let ClientFirst { header, authorization_id, user, nonce, extensions } = first;
        if authorization_id.is_some_and(|id| id != user) {
            return Err(Refusal::OtherAuthorizationId);
        }
        let (credential, known) = look_up(&user);
        // A delegation token is none of the users: tokens are not offered.
        let by_token = extensions.split(',').any(|e| e.eq_ignore_ascii_case("tokenauth=true"));
        let nonce = format!("{nonce}{server_nonce}");
        let salt = STANDARD.encode(&credential.salt);
        let answer = format!("r={nonce},s={salt},i={}", credential.iterations);
        let bare = message.get(header.len()..).unwrap_or_default();
        let said = format!("{bare},{answer}");
        let (header, known) = (header.to_owned(), known && !by_token);
        Ok((Self { mechanism, user, known, credential, header, nonce, said }, answer))
    }

    /// Takes the client's final message. Gives the user and the server's final message.
    pub(super) fn last(self, message: &[u8]) -> Result<(String, String), Refusal> {
        let message = std::str::from_utf8(message).map_err(|_| Refusal::Malformed)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(Refusal::Malformed)?;
        let mut fields = without_proof.split(',');
        let binding = fields.next().and_then(|field| field.strip_prefix("c="));
        let nonce = fields.next().and_then(|field| field.strip_prefix("r="));
        if binding != Some(&STANDARD.encode(&self.header)) || nonce != Some(&self.nonce) {
            return Err(Refusal::Malformed);
        }
        let mut proof = STANDARD.decode(proof).map_err(|_| Refusal::Malformed)?;
        let algorithms = Algorithms::of(self.mechanism);
        let said = [self.said.as_bytes(), b",", without_proof.as_bytes()];
        let signature = algorithms.hmac(&self.credential.stored_key, &said);
        if proof.len() != signature.as_ref().len() {
            return Err(Refusal::Malformed);
        }
        xor(&mut proof, signature.as_ref());
        let stored_key = algorithms.hash(&proof);
        let equal =
            constant_time::verify_slices_are_equal(&stored_key, &self.credential.stored_key);
        if equal.is_err() || !self.known {
            return Err(Refusal::WrongCredentials);
        }
        let signature = algorithms.hmac(&self.credential.server_key, &said);
        Ok((self.user, format!("v={}", STANDARD.encode(signature.as_ref()))))
    }
}

/// Why a server ends an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refusal {
    Malformed,
    OtherAuthorizationId,
    WrongCredentials,
}

struct ClientFirst<'a> {
    /// `n,,` or with an authorization id.
    header: &'a str,
    authorization_id: Option<String>,
    user: String,
    nonce: &'a str,
    extensions: &'a str,
}

impl<'a> ClientFirst<'a> {
    fn parse(message: &'a str) -> Option<Self> {
        // "y" says that the client could bind the channel if we could, which is as good.
        let rest = message.strip_prefix("n,").or_else(|| message.strip_prefix("y,"))?;
        let (authorization_id, bare) = rest.split_once(',')?;
        let authorization_id = match authorization_id {
            "" => None,
            id => Some(unescaped(id.strip_prefix("a=")?)?),
        };
        let (user, rest) = bare.strip_prefix("n=")?.split_once(",r=")?;
        let (nonce, extensions) = rest.split_once(',').unwrap_or((rest, ""));
        let printable = nonce.bytes().all(|byte| matches!(byte, 0x21..=0x7e));
        if !(1..=NONCE_BYTES_MAX).contains(&nonce.len()) || !printable {
            return None;
        }
        let header = message.get(..message.len() - bare.len())?;
        Some(Self { header, authorization_id, user: unescaped(user)?, nonce, extensions })
    }
}

/// The client's side of one exchange.
pub(super) struct ClientExchange {
    mechanism: Mechanism,
    user: String,
    password: Zeroizing<String>,
    nonce: String,
    /// The signature that the server's final message must carry, once it can be known.
    server_signature: Option<Vec<u8>>,
}

/// What a client needs of its password for one salt: worth keeping, for making it takes
/// thousands of hashes.
#[derive(Clone)]
pub(super) struct SaltedPassword {
    salt: Vec<u8>,
    iterations: u32,
    salted: Zeroizing<Vec<u8>>,
}

impl ClientExchange {
    pub(super) fn new(
        mechanism: Mechanism,
        user: &str,
        password: Zeroizing<String>,
        nonce: String,
    ) -> Self {
        Self { mechanism, user: escaped(user), password, nonce, server_signature: None }
    }

    pub(super) fn first(&self) -> String {
        format!("{HEADER}{}", self.first_bare())
    }

    fn first_bare(&self) -> String {
        format!("n={},r={}", self.user, self.nonce)
    }

    /// The final message, in answer to the server's first. `kept` is used and renewed.
    pub(super) fn last(
        &mut self,
        server_first: &[u8],
        kept: &mut Option<SaltedPassword>,
    ) -> Result<String, SaslError> {
        let malformed = |reason| self.malformed(reason);
        let text = std::str::from_utf8(server_first)
            .map_err(|_| malformed("the server's first message is not text"))?;
        let mut fields = text.split(',');
        let mut field = |name: &str| fields.next().and_then(|field| field.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(count)) = (field("r="), field("s="), field("i=")) else {
            return Err(malformed("the server's first message lacks a nonce, salt or count"));
        };
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err(malformed("the server's nonce does not continue ours"));
        }
        let salt =
            STANDARD.decode(salt).map_err(|_| malformed("the server's salt is not base64"))?;
        let iterations =
            count.parse().ok().filter(|n| (ITERATIONS_MIN..=ITERATIONS_MAX).contains(n));
        let iterations =
            iterations.ok_or(malformed("the server's count of iterations is out of bounds"))?;
        let salted = match kept.take() {
            Some(kept) if kept.salt == salt && kept.iterations == iterations => kept,
            _ => {
                let salted = salted_password(self.mechanism, &self.password, &salt, iterations);
                SaltedPassword { salt, iterations, salted }
            }
        };
        let algorithms = Algorithms::of(self.mechanism);
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(HEADER));
        let bare = self.first_bare();
        let said = [bare.as_bytes(), b",", text.as_bytes(), b",", without_proof.as_bytes()];
        let client_key = algorithms.hmac(&salted.salted, &[CLIENT_KEY]);
        let stored_key = algorithms.hash(client_key.as_ref());
        let mut proof = client_key.as_ref().to_vec();
        xor(&mut proof, algorithms.hmac(&stored_key, &said).as_ref());
        let server_key = algorithms.hmac(&salted.salted, &[SERVER_KEY]);
        self.server_signature = Some(algorithms.hmac(server_key.as_ref(), &said).as_ref().to_vec());
        *kept = Some(salted);
        Ok(format!("{without_proof},p={}", STANDARD.encode(proof)))
    }

    /// Whether the server knows the credential too.
    pub(super) fn verify(&self, server_final: &[u8]) -> Result<(), SaslError> {
        let proven = server_final.strip_prefix(b"v=").and_then(|text| STANDARD.decode(text).ok());
        let (Some(proven), Some(expected)) = (proven, &self.server_signature) else {
            return Err(self.malformed("the server's final message is malformed"));
        };
        constant_time::verify_slices_are_equal(&proven, expected)
            .map_err(|_| self.malformed("the server does not know the password either"))
    }

    fn malformed(&self, reason: &'static str) -> SaslError {
        SaslError::Exchange { mechanism: self.mechanism.name(), reason }
    }
}

/// A nonce: 144 random bits as text without a comma.
pub(super) fn random_nonce() -> String {
    let mut random = [0; 18];
    fill_random(&mut random);
    STANDARD.encode(random)
}

/// A credential for a user that does not exist, the same each time for the same user: with it, an
/// exchange goes on as long and looks the same as with a wrong password.
pub(super) fn phantom(mechanism: Mechanism, user: &str, secret: &[u8]) -> ScramCredential {
    let algorithms = Algorithms::of(mechanism);
    let random = algorithms.hmac(secret, &[user.as_bytes()]);
    let keys = algorithms.hash(random.as_ref());
    ScramCredential {
        salt: salt_text(random.as_ref().get(..SALT_BYTES).unwrap_or_default()),
        stored_key: keys.clone(),
        server_key: keys,
        iterations: ITERATIONS_MIN,
    }
}

pub(super) fn fill_random(bytes: &mut [u8]) {
    rand::fill(bytes).expect("the operating system's source of randomness does not fail");
}

/// Kafka's tools make salts of lower-case letters and digits.
fn salt_text(random: &[u8]) -> Vec<u8> {
    let digits = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let digit = |byte: &u8| digits.get(usize::from(*byte) % digits.len()).copied();
    random.iter().filter_map(digit).collect()
}

fn salted_password(
    mechanism: Mechanism,
    password: &str,
    salt: &[u8],
    iterations: u32,
) -> Zeroizing<Vec<u8>> {
    let algorithms = Algorithms::of(mechanism);
    let mut salted = Zeroizing::new(vec![0; algorithms.digest.output_len()]);
    let iterations = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
    pbkdf2::derive(algorithms.pbkdf2, iterations, salt, password.as_bytes(), &mut salted);
    salted
}

#[derive(Clone, Copy)]
struct Algorithms {
    digest: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

impl Algorithms {
    fn of(mechanism: Mechanism) -> Self {
        match mechanism {
            Mechanism::ScramSha512 => Self {
                digest: &digest::SHA512,
                hmac: hmac::HMAC_SHA512,
                pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512,
            },
            Mechanism::ScramSha256 | Mechanism::Plain | Mechanism::OAuthBearer => Self {
                digest: &digest::SHA256,
                hmac: hmac::HMAC_SHA256,
                pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256,
            },
        }
    }

    fn hash(&self, bytes: &[u8]) -> Vec<u8> {
        digest::digest(self.digest, bytes).as_ref().to_vec()
    }

    fn hmac(&self, key: &[u8], parts: &[&[u8]]) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&hmac::Key::new(self.hmac, key));
        for part in parts {
            context.update(part);
        }
        context.sign()
    }
}

fn xor(bytes: &mut [u8], with: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(with) {
        *byte ^= other;
    }
}

/// A user name as it stands in a message.
fn escaped(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

fn unescaped(text: &str) -> Option<String> {
    let mut pieces = text.split('=');
    let mut name = pieces.next()?.to_owned();
    for piece in pieces {
        let (character, rest) = match piece.split_at_checked(2)? {
            ("2C", rest) => (',', rest),
            ("3D", rest) => ('=', rest),
            _ => return None,
        };
        name.push(character);
        name.push_str(rest);
    }
    (!name.is_empty() && !name.contains('\0')).then_some(name)
}

/// Says that the client does not bind the channel and is its own authority.
const HEADER: &str = "n,,";

const CLIENT_KEY: &[u8] = b"Client Key";
const SERVER_KEY: &[u8] = b"Server Key";

/// Longest nonce of a client. Those in use take some 30 bytes, and each is held and hashed twice.
const NONCE_BYTES_MAX: usize = 256;

/// Length of the salts of Kafka's tools.
const SALT_BYTES: usize = 26;

#[cfg(test)]
mod tests;
