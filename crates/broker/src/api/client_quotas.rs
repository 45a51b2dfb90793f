//! DescribeClientQuotas and AlterClientQuotas, versions 0-1 (KIP-546).
//!
//! As in Kafka an alteration of one entity is made as a whole or refused, and one entity's refusal
//! does not stop the others. The quota of an address names an address; Kafka also resolves names of
//! hosts.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::alter_client_quotas_request as asked;
use moldau_protocol::messages::alter_client_quotas_response as altered;
use moldau_protocol::messages::describe_client_quotas_request::ComponentData;
use moldau_protocol::messages::describe_client_quotas_response::{
    EntityData, EntryData, ValueData,
};
use moldau_protocol::messages::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, DURABLE_WITHIN, Outcome, once_durable};
use crate::error::{Refusal, denied};
use crate::quota_entity::{ADDRESS, CLIENT, EntityName, QuotaChange, QuotaEntity, QuotaKey, USER};
use crate::quotas::QuotaRules;
use crate::topic_config::shown;

/// Kafka's numbers of matches: of a name, of the default entity, of any entity of the kind.
const MATCH_EXACT: i8 = 0;
const MATCH_DEFAULT: i8 = 1;
const MATCH_ANY: i8 = 2;

/// Bytes of a name in an entity: a record of the journal holds some, and names of users and
/// clients are shorter.
const NAME_BYTES_MAX: usize = 4_096;

/// By how much a whole number may differ from one, as in Kafka.
const WHOLE_WITHIN: f64 = 1e-6;

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeClientQuotasRequest,
) -> Outcome<DescribeClientQuotasResponse> {
    let checked = match call.rights.allow_on_cluster(Operation::DescribeConfigs) {
        true => check(&request.components),
        false => Err(denied(ResourceType::Cluster)),
    };
    Outcome::Now(match checked {
        Ok(()) => DescribeClientQuotasResponse {
            entries: Some(call.state.quotas.view(|rules| matching(rules, &request))),
            ..DescribeClientQuotasResponse::default()
        },
        Err(refusal) => DescribeClientQuotasResponse {
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            entries: None,
            ..DescribeClientQuotasResponse::default()
        },
    })
}

/// A filter names each kind of entity once, and has a name where it asks for one.
fn check(components: &[ComponentData]) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let mut seen = HashSet::new();
    for component in components {
        let kind = component.entity_type.as_str();
        if kind.is_empty() {
            return invalid("a kind of entity is not empty");
        }
        if !seen.insert(kind) {
            return invalid("a kind of entity stands in a filter once");
        }
        match (component.match_type, &component.r#match) {
            (MATCH_EXACT, None) => return invalid("an exact match has a name"),
            (MATCH_DEFAULT | MATCH_ANY, Some(_)) => {
                return invalid("only an exact match has a name");
            }
            (MATCH_EXACT | MATCH_DEFAULT | MATCH_ANY, _) => {}
            _ => return invalid("there is no such match"),
        }
        if ![USER, CLIENT, ADDRESS].contains(&kind) {
            let message = "entities are users, clients and addresses";
            return Err(Refusal::new(ErrorCode::UnsupportedVersion, message));
        }
    }
    match seen.contains(ADDRESS) && seen.len() > 1 {
        true => invalid("an address stands alone"),
        false => Ok(()),
    }
}

fn matching(rules: &QuotaRules, request: &DescribeClientQuotasRequest) -> Vec<EntryData> {
    let takes = |entity: &QuotaEntity| {
        let parts = entity.parts();
        let takes = |component: &ComponentData| {
            let part = parts.iter().find(|(kind, _)| *kind == component.entity_type);
            part.is_some_and(|(_, name)| match component.match_type {
                MATCH_EXACT => name.name() == component.r#match.as_deref(),
                MATCH_DEFAULT => **name == EntityName::Default,
                _ => true,
            })
        };
        request.components.iter().all(takes)
            && (!request.strict || parts.len() == request.components.len())
    };
    let entities = rules.iter().filter(|(entity, _)| takes(entity));
    let entries = entities.map(|(entity, quotas)| {
        let parts = entity.parts().into_iter().map(|(kind, name)| EntityData {
            entity_type: kind.to_owned(),
            entity_name: name.name().map(str::to_owned),
            ..EntityData::default()
        });
        let values = quotas.iter().map(|(key, value)| ValueData {
            key: key.name().to_owned(),
            value: *value,
            ..ValueData::default()
        });
        EntryData { entity: parts.collect(), values: values.collect(), ..EntryData::default() }
    });
    entries.collect()
}

/// An entity as it is asked for, and what came of it.
type Outcomes = BTreeMap<BTreeMap<String, Option<String>>, Result<(), Refusal>>;

pub(crate) fn alter(
    call: &Call<'_>,
    request: AlterClientQuotasRequest,
) -> Outcome<AlterClientQuotasResponse> {
    let names: Vec<_> = request.entries.iter().map(|entry| names_of(&entry.entity)).collect();
    let refuse = move |refusal: &Refusal| {
        let refused = names.iter().map(|entity| (entity.clone(), Err(refusal.clone())));
        respond(refused.collect())
    };
    if !call.rights.allow_on_cluster(Operation::AlterConfigs) {
        return Outcome::Now(refuse(&denied(ResourceType::Cluster)));
    }
    let altered = call.state.quotas.alter(&call.state.storage, |rules| {
        let (changes, outcomes) = decide(rules, &request.entries);
        match request.validate_only {
            true => (Vec::new(), outcomes),
            false => (changes, outcomes),
        }
    });
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

/// The changes, and what to answer about each entity.
fn decide(rules: &QuotaRules, entries: &[asked::EntryData]) -> (Vec<QuotaChange>, Outcomes) {
    let (mut all, mut outcomes) = (Vec::new(), Outcomes::new());
    for entry in entries {
        let changes = changes(rules, entry);
        let outcome = changes.map(|changes| all.extend(changes));
        outcomes.insert(names_of(&entry.entity), outcome);
    }
    (all, outcomes)
}

/// The changes of one entity, without those that change nothing.
fn changes(rules: &QuotaRules, entry: &asked::EntryData) -> Result<Vec<QuotaChange>, Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let mut seen = BTreeSet::new();
    if let Some(twice) = entry.ops.iter().find(|op| !seen.insert(&op.key)) {
        return invalid(format!("duplicate quota {} of an entity", shown(&twice.key)));
    }
    let entity = entity_of(&entry.entity)?;
    let mut changes = Vec::new();
    for op in &entry.ops {
        let is_of_addresses = matches!(entity, QuotaEntity::Address(_));
        let key = QuotaKey::named(&op.key).filter(|key| key.is_of_addresses() == is_of_addresses);
        let value = (!op.remove).then_some(op.value);
        let key = match (key, value) {
            (Some(key), _) => key,
            // As in Kafka, what cannot be there may be removed.
            (None, None) => continue,
            (None, Some(_)) => {
                return invalid(format!("Invalid configuration key {}", shown(&op.key)));
            }
        };
        if let Some(value) = value {
            check_value(key, value)?;
        }
        if rules.get(&entity, key) != value {
            changes.push(QuotaChange { entity: entity.clone(), key, value });
        }
    }
    Ok(changes)
}

fn check_value(key: QuotaKey, value: f64) -> Result<(), Refusal> {
    let invalid = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let name = key.name();
    if value.is_nan() || value <= 0.0 {
        return invalid(format!("Quota {name} must be greater than 0"));
    }
    let (most, kind) = match key {
        QuotaKey::ConnectionCreationRate => (f64::from(i32::MAX), "an INT"),
        _ => (i64::MAX as f64, "a LONG"),
    };
    if key.is_whole() && value > most {
        return invalid(format!("Proposed value for {name} is too large for {kind}."));
    }
    if key.is_whole() && (value - value.round()).abs() > WHOLE_WITHIN {
        return invalid(format!("{name} cannot be a fractional value."));
    }
    Ok(())
}

fn entity_of(parts: &[asked::EntityData]) -> Result<QuotaEntity, Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let (mut user, mut client, mut address) = (None, None, None);
    for part in parts {
        let slot = match part.entity_type.as_str() {
            USER => &mut user,
            CLIENT => &mut client,
            ADDRESS => &mut address,
            other => {
                let other = shown(other);
                return invalid(&format!("Unhandled client quota entity type: {other}"));
            }
        };
        match &part.entity_name {
            Some(name) if name.is_empty() => {
                return invalid(&format!("Empty {} not supported", part.entity_type));
            }
            Some(name) if name.len() > NAME_BYTES_MAX => {
                return invalid("the name of an entity is too long");
            }
            _ => {}
        }
        // As in Kafka, the last name of a kind counts.
        *slot = Some(EntityName::of(part.entity_name.clone()));
    }
    match (user, client, address) {
        (Some(user), None, None) => Ok(QuotaEntity::User(user)),
        (None, Some(client), None) => Ok(QuotaEntity::Client(client)),
        (Some(user), Some(client), None) => Ok(QuotaEntity::UserClient(user, client)),
        (None, None, Some(EntityName::Default)) => Ok(QuotaEntity::Address(EntityName::Default)),
        (None, None, Some(EntityName::Named(name))) => match name.parse::<IpAddr>() {
            Ok(address) => Ok(QuotaEntity::address(address)),
            Err(_) => {
                let name = shown(&name);
                invalid(&format!("{name} is not a valid IP or resolvable host."))
            }
        },
        (None, None, None) => invalid("Invalid empty client quota entity"),
        (_, _, Some(_)) => invalid(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or \
             ClientId",
        ),
    }
}

fn names_of(parts: &[asked::EntityData]) -> BTreeMap<String, Option<String>> {
    parts.iter().map(|part| (part.entity_type.clone(), part.entity_name.clone())).collect()
}

fn respond(outcomes: Outcomes) -> AlterClientQuotasResponse {
    let entries = outcomes.into_iter().map(|(parts, outcome)| {
        let entity = parts.into_iter().map(|(kind, name)| altered::EntityData {
            entity_type: kind,
            entity_name: name,
            ..altered::EntityData::default()
        });
        let refusal = outcome.err();
        altered::EntryData {
            error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.code).into(),
            error_message: refusal.map(|refusal| refusal.message),
            entity: entity.collect(),
            ..altered::EntryData::default()
        }
    });
    AlterClientQuotasResponse { entries: entries.collect(), ..AlterClientQuotasResponse::default() }
}
