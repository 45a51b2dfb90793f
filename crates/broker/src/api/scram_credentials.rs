//! DescribeUserScramCredentials 0, AlterUserScramCredentials 0 (KIP-554).
//!
//! A client sends a salted password, never the password; no answer contains the keys made of it.
//! As in Kafka a user stands in a request once, and the changes of a request are made together.

use std::collections::BTreeMap;

use moldau_net::sasl;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use moldau_protocol::messages::alter_user_scram_credentials_response as altered;
use moldau_protocol::messages::describe_user_scram_credentials_response::{
    CredentialInfo, DescribeUserScramCredentialsResult,
};
use moldau_protocol::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, DURABLE_WITHIN, Outcome, once_durable};
use crate::error::{Refusal, denied};
use crate::scram_credentials::{ScramChanges, ScramCredential, ScramCredentials, ScramMechanism};

/// Fewest and most iterations of a credential, as in Kafka.
const ITERATIONS_MIN: i32 = 4_096;
const ITERATIONS_MAX: i32 = 16_384;

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeUserScramCredentialsRequest,
) -> Outcome<DescribeUserScramCredentialsResponse> {
    let users = request.users.unwrap_or_default().into_iter().map(|user| user.name);
    if !call.rights.allow_on_cluster(Operation::Describe) {
        let refusal = denied(ResourceType::Cluster);
        // As in Kafka, which leaves the names out.
        let results = users.map(|_| undescribed(String::new(), refusal.clone())).collect();
        return Outcome::Now(DescribeUserScramCredentialsResponse {
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            results,
            ..DescribeUserScramCredentialsResponse::default()
        });
    }
    let mut mentions: BTreeMap<String, usize> = BTreeMap::new();
    users.for_each(|user| *mentions.entry(user).or_default() += 1);
    let results = call.state.security.view_credentials(|credentials| {
        if mentions.is_empty() {
            return credentials.users().map(|user| described(credentials, user)).collect();
        }
        let results = mentions.into_iter().map(|(user, count)| match count {
            1 => described(credentials, &user),
            _ => {
                let refusal = Refusal::new(ErrorCode::DuplicateResource, TWICE);
                undescribed(user, refusal)
            }
        });
        results.collect()
    });
    Outcome::Now(DescribeUserScramCredentialsResponse {
        results,
        ..DescribeUserScramCredentialsResponse::default()
    })
}

fn described(credentials: &ScramCredentials, user: &str) -> DescribeUserScramCredentialsResult {
    let infos = ScramMechanism::ALL.into_iter().filter_map(|mechanism| {
        let credential = credentials.find(user, mechanism)?;
        Some(CredentialInfo {
            mechanism: mechanism.code(),
            iterations: i32::try_from(credential.0.iterations).unwrap_or(i32::MAX),
            ..CredentialInfo::default()
        })
    });
    let credential_infos: Vec<_> = infos.collect();
    if credential_infos.is_empty() {
        let refusal = Refusal::new(ErrorCode::ResourceNotFound, "the user has no credentials");
        return undescribed(user.to_owned(), refusal);
    }
    DescribeUserScramCredentialsResult {
        user: user.to_owned(),
        credential_infos,
        ..DescribeUserScramCredentialsResult::default()
    }
}

fn undescribed(user: String, refusal: Refusal) -> DescribeUserScramCredentialsResult {
    DescribeUserScramCredentialsResult {
        user,
        error_code: refusal.code.into(),
        error_message: Some(refusal.message),
        ..DescribeUserScramCredentialsResult::default()
    }
}

/// The outcome for each user of a request.
type Outcomes = BTreeMap<String, Result<(), Refusal>>;

pub(crate) fn alter(
    call: &Call<'_>,
    request: AlterUserScramCredentialsRequest,
) -> Outcome<AlterUserScramCredentialsResponse> {
    let deleted = request.deletions.iter().map(|it| &it.name);
    let names: Vec<String> =
        deleted.chain(request.upsertions.iter().map(|it| &it.name)).cloned().collect();
    let refuse = move |refusal: &Refusal| {
        respond(names.iter().map(|name| (name.clone(), Err(refusal.clone()))).collect())
    };
    if !call.rights.allow_on_cluster(Operation::Alter) {
        return Outcome::Now(refuse(&denied(ResourceType::Cluster)));
    }
    let altered = call
        .state
        .security
        .alter_credentials(&call.state.storage, |credentials| decide(credentials, request));
    match altered {
        Ok((outcomes, Some(lsn))) => {
            once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
                Ok(()) => respond(outcomes),
                Err(refusal) => refuse(&refusal),
            })
        }
        Ok((outcomes, None)) => Outcome::Now(respond(outcomes)),
        Err(refusal) => Outcome::Now(refuse(&refusal)),
    }
}

/// The changes, and the answer for each user. As in Kafka the first error about a user
/// stands, and a second change of a user takes back the first.
fn decide(
    credentials: &ScramCredentials,
    request: AlterUserScramCredentialsRequest,
) -> (ScramChanges, Outcomes) {
    let mut changes = ScramChanges::default();
    let mut outcomes = Outcomes::new();
    for deletion in request.deletions {
        if may_change(&mut outcomes, &deletion.name) {
            let mechanism = check_deletion(credentials, &deletion);
            let outcome = mechanism.map(|it| changes.deleted.push((deletion.name.clone(), it)));
            outcomes.insert(deletion.name, outcome);
        }
    }
    for upsertion in request.upsertions {
        if may_change(&mut outcomes, &upsertion.name) {
            let credential = credential(&upsertion);
            let outcome = credential
                .map(|(it, keys)| changes.upserted.push((upsertion.name.clone(), it, keys)));
            outcomes.insert(upsertion.name, outcome);
        }
    }
    let is_told_well = |user: &str| outcomes.get(user).is_some_and(Result::is_ok);
    changes.deleted.retain(|(user, _)| is_told_well(user));
    changes.upserted.retain(|(user, ..)| is_told_well(user));
    (changes, outcomes)
}

/// Whether nothing was said of the user yet.
fn may_change(outcomes: &mut Outcomes, user: &str) -> bool {
    let Some(outcome) = outcomes.get_mut(user) else { return true };
    if outcome.is_ok() {
        *outcome = Err(Refusal::new(ErrorCode::DuplicateResource, TWICE));
    }
    false
}

fn check_deletion(
    credentials: &ScramCredentials,
    deletion: &ScramCredentialDeletion,
) -> Result<ScramMechanism, Refusal> {
    let mechanism = check_user(&deletion.name, deletion.mechanism)?;
    match credentials.find(&deletion.name, mechanism) {
        Some(_) => Ok(mechanism),
        None => {
            let message = "Attempt to delete a user credential that does not exist";
            Err(Refusal::new(ErrorCode::ResourceNotFound, message))
        }
    }
}

fn check_user(name: &str, mechanism: i8) -> Result<ScramMechanism, Refusal> {
    if name.is_empty() {
        let message = "Username must not be empty";
        return Err(Refusal::new(ErrorCode::UnacceptableCredential, message));
    }
    let unknown = || Refusal::new(ErrorCode::UnsupportedSaslMechanism, "Unknown SCRAM mechanism");
    ScramMechanism::of(mechanism).ok_or_else(unknown)
}

fn credential(
    upsertion: &ScramCredentialUpsertion,
) -> Result<(ScramMechanism, ScramCredential), Refusal> {
    let mechanism = check_user(&upsertion.name, upsertion.mechanism)?;
    let unacceptable = |message: String| Refusal::new(ErrorCode::UnacceptableCredential, message);
    match upsertion.iterations {
        ..ITERATIONS_MIN => return Err(unacceptable("Too few iterations".to_owned())),
        ITERATIONS_MIN..=ITERATIONS_MAX => {}
        _ => return Err(unacceptable("Too many iterations".to_owned())),
    }
    let iterations = upsertion.iterations.unsigned_abs();
    let (salt, password) = (&upsertion.salt, &upsertion.salted_password);
    if salt.len() > SALT_BYTES_MAX {
        return Err(unacceptable(format!("the salt is longer than {SALT_BYTES_MAX} bytes")));
    }
    if password.is_empty() {
        return Err(unacceptable("the salted password is empty".to_owned()));
    }
    let keys = sasl::ScramCredential::from_salted_password;
    let credential = keys(mechanism.sasl(), password, salt, iterations);
    Ok((mechanism, ScramCredential(credential)))
}

fn respond(outcomes: Outcomes) -> AlterUserScramCredentialsResponse {
    let results = outcomes.into_iter().map(|(user, outcome)| {
        let refusal = outcome.err();
        altered::AlterUserScramCredentialsResult {
            user,
            error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.code).into(),
            error_message: refusal.map(|refusal| refusal.message),
            ..altered::AlterUserScramCredentialsResult::default()
        }
    });
    AlterUserScramCredentialsResponse {
        results: results.collect(),
        ..AlterUserScramCredentialsResponse::default()
    }
}

const TWICE: &str = "A user credential cannot be altered twice in the same request";

/// Longest salt that is kept; clients make 16 bytes or some more.
const SALT_BYTES_MAX: usize = 1_024;
