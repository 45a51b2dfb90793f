//! ACLs and SCRAM credentials: what all connections share of them, and their place in the journal.
//!
//! A request's changes are one metadata record, so that a crash leaves all of them or none. They
//! hold from the moment they are appended; the client is answered once they are durable. Both are
//! kept whether the operator has switched authorization on or not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use moldau_net::LogLimit;
use moldau_protocol::ErrorCode;
use moldau_storage::Lsn;

use crate::authorizer::{
    AccessControlEntry, Acl, AclFilter, Acls, Authorizer, Operation, ResourcePattern, ResourceType,
    Subject,
};
use crate::config::Config;
use crate::error::Refusal;
use crate::metadata_record::MetadataRecord;
use crate::scram_credentials::{ScramChanges, ScramCredentials};
use crate::storage::Storage;
use crate::topic_config::shown;

/// Most ACLs: each takes some hundred bytes, and listing goes through all of them.
const ACLS_MAX: usize = 100_000;

/// Most ACLs that one request removes, as in Kafka; those that several of its filters take count
/// for each of them, since the answer lists them so.
const ACLS_DELETED_MAX: usize = 10_000;

/// Most ACLs that the filters of one request are compared with under one lock: it takes
/// a tenth of a second. A filter that names its resource is compared with the ACLs of that name,
/// another one with all.
const ACLS_COMPARED_MAX: usize = 5_000_000;

/// Most SCRAM credentials, which take as much.
const CREDENTIALS_MAX: usize = 100_000;

/// ACLs that a filter takes, by the resources that they are about.
pub(crate) type Matching = Vec<(ResourcePattern, Vec<AccessControlEntry>)>;

/// Who may do what, and who can prove to be whom.
pub(crate) struct Security {
    /// `None` where everyone may do everything.
    authorizer: Option<Authorizer>,
    /// Guards the ACLs and the order of their records in the journal.
    acls: RwLock<Journaled<Acls>>,
    /// Grows with every change of the ACLs: decisions made before are void.
    generation: AtomicU64,
    /// Guards the credentials and the order of their records in the journal.
    credentials: RwLock<Journaled<ScramCredentials>>,
    /// Requests for something that the client may not do.
    pub(crate) denials: AtomicU64,
    /// By the type of what was denied, which tells the error that clients get.
    denials_logged: BTreeMap<ResourceType, LogLimit>,
}

#[derive(Default)]
struct Journaled<T> {
    state: T,
    /// Position of the last record: what it says may not be durable before.
    written: Option<Lsn>,
}

impl Security {
    /// Without ACLs and credentials.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            authorizer: config.authorization.as_ref().map(Authorizer::new),
            acls: RwLock::default(),
            generation: AtomicU64::new(0),
            credentials: RwLock::default(),
            denials: AtomicU64::new(0),
            denials_logged: ResourceType::ALL.iter().map(|it| (*it, LogLimit::default())).collect(),
        }
    }

    /// Applies a record that the journal holds; what is not about security is passed over.
    pub(crate) fn replay(&self, record: MetadataRecord) {
        match record {
            MetadataRecord::AclsChanged { created, deleted } => {
                write(&self.acls).state.apply(created, &deleted);
                self.generation.fetch_add(1, Ordering::Release);
            }
            MetadataRecord::ScramCredentialsChanged(changes) => {
                write(&self.credentials).state.apply(changes);
            }
            _ => {}
        }
    }

    /// Takes the ACLs and credentials of others in place of these.
    pub(crate) fn replace(&self, by: &Self) {
        *write(&self.acls) = std::mem::take(&mut *write(&by.acls));
        *write(&self.credentials) = std::mem::take(&mut *write(&by.credentials));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Whether ACLs are enforced.
    pub(crate) fn is_enforced(&self) -> bool {
        self.authorizer.is_some()
    }

    /// Whether nothing that the principal asks for is to be looked up.
    pub(crate) fn is_unrestricted(&self, principal: &str) -> bool {
        self.authorizer.as_ref().is_none_or(|authorizer| authorizer.is_super_user(principal))
    }

    /// How often the ACLs have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Whether the subject may do this.
    pub(crate) fn allows(
        &self,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) -> bool {
        let Some(authorizer) = &self.authorizer else { return true };
        authorizer.allows(&read(&self.acls).state, subject, operation, resource_type, name)
    }

    /// Logs that something was denied, of each type of resource once in a while.
    pub(crate) fn log_denied(
        &self,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
        name: &str,
    ) {
        let Some(limit) = self.denials_logged.get(&resource_type) else { return };
        limit.log(|unlogged| {
            let (principal, address, name) = (&subject.principal, subject.address, shown(name));
            tracing::info!(
                principal, %address, ?operation, ?resource_type, name, unlogged, "denied"
            );
        });
    }

    /// Whether the subject may do this to any resource of the type.
    pub(crate) fn allows_somewhere(
        &self,
        subject: &Subject,
        operation: Operation,
        resource_type: ResourceType,
    ) -> bool {
        let Some(authorizer) = &self.authorizer else { return true };
        authorizer.allows_somewhere(&read(&self.acls).state, subject, operation, resource_type)
    }

    /// The ACLs that a filter takes.
    pub(crate) fn matching_acls(&self, filter: &AclFilter) -> Matching {
        read(&self.acls).state.matching(filter)
    }

    /// Adds ACLs; those that are there stay. Returns the position that must be durable first.
    ///
    /// # Errors
    /// `POLICY_VIOLATION` for too many, or a journal that takes nothing.
    pub(crate) fn create_acls(
        &self,
        storage: &Storage,
        acls: Vec<Acl>,
    ) -> Result<Option<Lsn>, Refusal> {
        let mut guard = write(&self.acls);
        let mut created = acls;
        created.retain(|acl| !guard.state.contains(acl));
        if created.is_empty() {
            return Ok(guard.written);
        }
        check_room(guard.state.len(), created.len(), ACLS_MAX, "ACLs")?;
        let record = MetadataRecord::AclsChanged { created, deleted: Vec::new() };
        guard.written = Some(append(storage, &record)?);
        if let MetadataRecord::AclsChanged { created, .. } = record {
            guard.state.apply(created, &[]);
        }
        self.generation.fetch_add(1, Ordering::Release);
        Ok(guard.written)
    }

    /// Removes the ACLs that filters take, and returns them filter by filter with the position
    /// that must be durable first.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for too many, or a journal that takes nothing.
    pub(crate) fn delete_acls(
        &self,
        storage: &Storage,
        filters: &[AclFilter],
    ) -> Result<(Vec<Matching>, Option<Lsn>), Refusal> {
        let mut guard = write(&self.acls);
        let found = find(&guard.state, filters)?;
        let deleted = found.iter().flatten().flat_map(|(pattern, entries)| {
            entries.iter().map(|entry| Acl { pattern: pattern.clone(), entry: entry.clone() })
        });
        let mut deleted: Vec<Acl> = deleted.collect();
        deleted.sort_unstable();
        deleted.dedup();
        if deleted.is_empty() {
            return Ok((found, guard.written));
        }
        let record = MetadataRecord::AclsChanged { created: Vec::new(), deleted };
        guard.written = Some(append(storage, &record)?);
        if let MetadataRecord::AclsChanged { deleted, .. } = &record {
            guard.state.apply(Vec::new(), deleted);
        }
        self.generation.fetch_add(1, Ordering::Release);
        Ok((found, guard.written))
    }

    /// Reads the credentials.
    pub(crate) fn view_credentials<T>(&self, view: impl FnOnce(&ScramCredentials) -> T) -> T {
        view(&read(&self.credentials).state)
    }

    /// Makes the changes that `decide` finds to be made, and returns what else it says with the
    /// position that must be durable first.
    ///
    /// # Errors
    /// `POLICY_VIOLATION` for too many, or a journal that takes nothing.
    pub(crate) fn alter_credentials<T>(
        &self,
        storage: &Storage,
        decide: impl FnOnce(&ScramCredentials) -> (ScramChanges, T),
    ) -> Result<(T, Option<Lsn>), Refusal> {
        let mut guard = write(&self.credentials);
        let (changes, decided) = decide(&guard.state);
        if changes.is_empty() {
            return Ok((decided, guard.written));
        }
        let added = changes.upserted.len();
        check_room(guard.state.len(), added, CREDENTIALS_MAX, "SCRAM credentials")?;
        let record = MetadataRecord::ScramCredentialsChanged(changes);
        guard.written = Some(append(storage, &record)?);
        if let MetadataRecord::ScramCredentialsChanged(changes) = record {
            guard.state.apply(changes);
        }
        Ok((decided, guard.written))
    }

    /// Hands over the records that rebuild all of it, which does not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let (acls, credentials) = (read(&self.acls), read(&self.credentials));
        let acls = acls.state.iter().flat_map(|(pattern, entries)| {
            entries.iter().map(move |entry| MetadataRecord::AclsChanged {
                created: vec![Acl { pattern: pattern.clone(), entry: entry.clone() }],
                deleted: Vec::new(),
            })
        });
        let credentials = credentials.state.snapshot().map(MetadataRecord::ScramCredentialsChanged);
        take(acls.chain(credentials).collect())
    }
}

/// The ACLs that filters take, filter by filter.
fn find(acls: &Acls, filters: &[AclFilter]) -> Result<Vec<Matching>, Refusal> {
    let too_many = |message| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let compared = filters.iter().fold(0, |sum: usize, it| sum.saturating_add(acls.compared(it)));
    if compared > ACLS_COMPARED_MAX {
        return too_many("too many filters without a resource name".to_owned());
    }
    let (mut found, mut count) = (Vec::with_capacity(filters.len()), 0);
    for filter in filters {
        let matching = acls.matching(filter);
        count += matching.iter().map(|(_, entries)| entries.len()).sum::<usize>();
        if count > ACLS_DELETED_MAX {
            return too_many(format!("a request can delete at most {ACLS_DELETED_MAX} ACLs"));
        }
        found.push(matching);
    }
    Ok(found)
}

fn check_room(count: usize, added: usize, max: usize, what: &str) -> Result<(), Refusal> {
    if count.saturating_add(added) <= max {
        return Ok(());
    }
    let message = format!("the limit is {max} {what}, of which {count} exist");
    Err(Refusal::new(ErrorCode::PolicyViolation, message))
}

fn append(storage: &Storage, record: &MetadataRecord) -> Result<Lsn, Refusal> {
    storage.write(&record.encode())
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
