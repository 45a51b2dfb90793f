//! Credentials of Amazon Web Services: where they come from and how they are kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use hyper::Method;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::kms::http::{Answer, Ask, Endpoint, HttpClient, percent_encode};
use crate::kms::lease::{Fetched, Lease};
use crate::kms::secret_file::SecretFile;
use crate::{Error, KmsError, utc};

/// Where credentials come from. Files are read when credentials are needed anew.
#[derive(Debug, Clone)]
pub enum AwsAuth {
    /// An access key of long life.
    LongTerm {
        /// Its id.
        access_key_id: String,
        /// The file with its secret.
        secret_access_key_file: PathBuf,
    },
    /// A role that a web identity may assume (IRSA).
    WebIdentity {
        /// The role.
        role_arn: String,
        /// The name of the session in AWS's own logs.
        session_name: String,
        /// The file with the identity's token.
        token_file: PathBuf,
        /// URL of the security token service, if not the region's own.
        sts_url: Option<String>,
    },
    /// The role of the EC2 instance (IMDSv2).
    InstanceMetadata {
        /// URL of the metadata service, if not `http://169.254.169.254`.
        url: Option<String>,
    },
}

/// Credentials with which requests are signed.
pub(super) struct Credentials {
    pub(super) access_key_id: String,
    pub(super) secret_access_key: Zeroizing<String>,
    pub(super) session_token: Option<Zeroizing<String>>,
}

/// Gets credentials, and keeps them.
pub(super) struct CredentialSource {
    auth: AwsAuth,
    /// The security token service, or the metadata service.
    endpoint: Option<Endpoint>,
    lease: Lease<Credentials>,
}

impl CredentialSource {
    pub(super) fn new(auth: &AwsAuth, region: &str) -> Result<Self, Error> {
        let endpoint = match auth {
            AwsAuth::LongTerm { .. } => None,
            AwsAuth::WebIdentity { sts_url, .. } => {
                let default = || format!("https://sts.{region}.amazonaws.com");
                let url = sts_url.clone().unwrap_or_else(default);
                Some(Endpoint::parse("sts_url", &url)?)
            }
            AwsAuth::InstanceMetadata { url } => {
                let url = url.as_deref().unwrap_or("http://169.254.169.254");
                Some(Endpoint::parse("url", url)?)
            }
        };
        Ok(Self { auth: auth.clone(), endpoint, lease: Lease::new() })
    }

    /// Credentials that should be good.
    pub(super) async fn get(&self, http: &HttpClient) -> Result<Arc<Credentials>, KmsError> {
        self.lease.get(|_| self.fetch(http)).await
    }

    /// Forgets credentials that were refused.
    pub(super) fn reject(&self, credentials: &Arc<Credentials>) {
        self.lease.reject(credentials);
    }

    /// Renews the credentials that are held where it is due.
    pub(super) async fn maintain(&self, http: &HttpClient) -> Result<(), KmsError> {
        if self.lease.good().is_none() {
            return Ok(());
        }
        self.get(http).await.map(drop)
    }

    async fn fetch(&self, http: &HttpClient) -> Result<Fetched<Credentials>, KmsError> {
        match (&self.auth, &self.endpoint) {
            (AwsAuth::LongTerm { access_key_id, secret_access_key_file }, _) => {
                let (secret_access_key, _) = SecretFile(secret_access_key_file.clone()).read()?;
                let access_key_id = access_key_id.clone();
                let value = Credentials { access_key_id, secret_access_key, session_token: None };
                // Read again from time to time, since a secret may be replaced.
                Ok(Fetched { value, lifetime: Some(SECRET_FILE_LIFETIME) })
            }
            (AwsAuth::WebIdentity { role_arn, session_name, token_file, .. }, Some(sts)) => {
                let (token, _) = SecretFile(token_file.clone()).read()?;
                let form = Zeroizing::new(format!(
                    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}\
                     &RoleSessionName={}&WebIdentityToken={}",
                    percent_encode(role_arn),
                    percent_encode(session_name),
                    percent_encode(&token),
                ));
                assume_role(http, sts, &form).await
            }
            (AwsAuth::InstanceMetadata { .. }, Some(endpoint)) => {
                instance_credentials(http, endpoint).await
            }
            (_, None) => Err(KmsError::Refused("no service gives credentials".to_owned())),
        }
    }
}

async fn assume_role(
    http: &HttpClient,
    sts: &Endpoint,
    form: &str,
) -> Result<Fetched<Credentials>, KmsError> {
    let form_type = Zeroizing::new("application/x-www-form-urlencoded".to_owned());
    let ask = Ask {
        method: Method::POST,
        path: "/".to_owned(),
        headers: vec![("content-type", form_type), ("accept", Zeroizing::new("text/xml".into()))],
        body: Zeroizing::new(form.as_bytes().to_vec()),
    };
    let answer = http.send(sts, ask).await?;
    let text = str::from_utf8(&answer.body).map_err(|_| unexpected())?;
    if answer.status != 200 {
        let code = element(text, "Code").unwrap_or("no code");
        return Err(refused("the security token service", &answer, code));
    }
    let field = |name| element(text, name).ok_or_else(unexpected);
    let given = Given {
        access_key_id: field("AccessKeyId")?.to_owned(),
        secret_access_key: field("SecretAccessKey")?.to_owned(),
        token: field("SessionToken")?.to_owned(),
        expiration: field("Expiration")?.to_owned(),
    };
    given.fetched(SystemTime::now())
}

/// Asks the metadata service: for a token, for the name of the role, for the role's credentials.
async fn instance_credentials(
    http: &HttpClient,
    endpoint: &Endpoint,
) -> Result<Fetched<Credentials>, KmsError> {
    let ask = |method, path: &str, header| {
        let headers = vec![header];
        Ask { method, path: path.to_owned(), headers, body: Zeroizing::default() }
    };
    let text = async |ask| {
        let answer = http.send(endpoint, ask).await?;
        if answer.status != 200 {
            return Err(refused("the metadata service", &answer, "no credentials"));
        }
        let text = str::from_utf8(&answer.body).map_err(|_| unexpected())?.trim();
        Ok(Zeroizing::new(text.to_owned()))
    };
    let seconds = Zeroizing::new(METADATA_TOKEN_SECONDS.to_owned());
    let ttl = ("x-aws-ec2-metadata-token-ttl-seconds", seconds);
    let token = text(ask(Method::PUT, "/latest/api/token", ttl)).await?;
    let header = || ("x-aws-ec2-metadata-token", token.clone());
    let roles = text(ask(Method::GET, ROLES_PATH, header())).await?;
    let role = roles.lines().next().ok_or_else(unexpected)?;
    let path = format!("{ROLES_PATH}{}", percent_encode(role));
    let given = text(ask(Method::GET, &path, header())).await?;
    let given: Given = serde_json::from_str(&given).map_err(|_| unexpected())?;
    given.fetched(SystemTime::now())
}

/// Credentials as both services give them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Given {
    access_key_id: String,
    secret_access_key: String,
    token: String,
    expiration: String,
}

impl Given {
    fn fetched(self, now: SystemTime) -> Result<Fetched<Credentials>, KmsError> {
        let secret_access_key = Zeroizing::new(self.secret_access_key);
        let session_token = Some(Zeroizing::new(self.token));
        let expiration = utc::parse(&self.expiration).ok_or_else(unexpected)?;
        let lifetime = expiration.duration_since(now).ok().filter(|left| !left.is_zero());
        let lifetime = lifetime.ok_or_else(|| {
            KmsError::Unavailable("the credentials that AWS gave have expired".to_owned())
        })?;
        let access_key_id = self.access_key_id;
        let value = Credentials { access_key_id, secret_access_key, session_token };
        Ok(Fetched { value, lifetime: Some(lifetime) })
    }
}

/// The text of the first element with this name. What is asked for here holds no markup and no
/// entity.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, after) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = after.split_once(&format!("</{name}>"))?;
    Some(text.trim())
}

fn refused(who: &str, answer: &Answer, code: &str) -> KmsError {
    let code: String = code.chars().filter(|c| !c.is_control()).take(CODE_CHARS_MAX).collect();
    let said = format!("{who}: status {}, {code}", answer.status);
    match answer.status {
        429 | 500.. => KmsError::Unavailable(said),
        // The identity provider could not be asked; the same request may succeed later.
        _ if code == "IDPCommunicationError" || code.starts_with("Throttling") => {
            KmsError::Unavailable(said)
        }
        _ => KmsError::Refused(said),
    }
}

fn unexpected() -> KmsError {
    KmsError::Unavailable("AWS's answer is not as documented".to_owned())
}

const ROLES_PATH: &str = "/latest/meta-data/iam/security-credentials/";
/// The token of the metadata service serves the requests that follow it at once.
const METADATA_TOKEN_SECONDS: &str = "60";
/// How long a secret from a file is used before the file is read again.
const SECRET_FILE_LIFETIME: std::time::Duration = std::time::Duration::from_secs(300);
/// The longest error code that stands in a log line.
const CODE_CHARS_MAX: usize = 100;
