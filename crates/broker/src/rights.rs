//! What one connection may do: the authorizer's decisions, remembered.
//!
//! A connection has one principal and one address, so a decision is found by operation and resource
//! alone. Decisions are void once an ACL has changed. Where nothing is to be decided, because
//! authorization is off or the principal is a super user, there is nothing to look up either.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType, Subject};
use crate::security::Security;

/// Decisions that a connection remembers. One that uses more names than that begins anew; a
/// client uses some dozens.
const REMEMBERED_MAX: usize = 1_024;

/// Bytes of a name whose decision is remembered. No topic has a longer one, and clients may ask for
/// names that are a hundred times as long.
const NAME_BYTES_MAX: usize = 249;

/// A kind of decision: what is done to which type of resource.
pub(crate) type Right = (ResourceType, Operation);

/// The subject of a connection, with what was decided about it.
pub(crate) struct Access {
    security: Arc<Security>,
    subject: Subject,
    remembered: RefCell<Remembered>,
}

#[derive(Default)]
struct Remembered {
    /// The generation of ACLs from which the decisions are.
    generation: u64,
    /// There are a dozen kinds of decisions at most.
    by_right: Vec<(Right, HashMap<Box<str>, bool>)>,
    /// Whether the right exists on any resource.
    somewhere: Vec<(Right, bool)>,
    count: usize,
}

impl Access {
    /// `None` where the subject may do everything.
    pub(crate) fn of(security: &Arc<Security>, subject: Subject) -> Option<Rc<Self>> {
        if security.is_unrestricted(&subject.principal) {
            return None;
        }
        let remembered = RefCell::default();
        Some(Rc::new(Self { security: Arc::clone(security), subject, remembered }))
    }

    fn allows(&self, (resource_type, operation): Right, name: &str) -> bool {
        let mut remembered = self.remembered();
        let right = (resource_type, operation);
        if let Some(decided) = remembered.find(right, name) {
            return self.count(decided);
        }
        let decided = self.security.allows(&self.subject, operation, resource_type, name);
        if !decided {
            self.security.log_denied(&self.subject, operation, resource_type, name);
        }
        remembered.keep(right, name, decided);
        self.count(decided)
    }

    fn allows_somewhere(&self, right @ (resource_type, operation): Right) -> bool {
        let mut remembered = self.remembered();
        let decided = remembered.somewhere.iter().find(|(decided, _)| *decided == right);
        if let Some((_, decided)) = decided {
            return self.count(*decided);
        }
        let decided = self.security.allows_somewhere(&self.subject, operation, resource_type);
        remembered.somewhere.push((right, decided));
        self.count(decided)
    }

    /// As [`Access::allows`], without a trace in the log: it is not an operation of a client.
    fn would_allow(&self, (resource_type, operation): Right, name: &str) -> bool {
        self.security.allows(&self.subject, operation, resource_type, name)
    }

    /// The decisions that still hold. The generation is read before the ACLs are, so a decision
    /// that a change overtakes is dropped at the next look.
    fn remembered(&self) -> std::cell::RefMut<'_, Remembered> {
        let generation = self.security.generation();
        let mut remembered = self.remembered.borrow_mut();
        if remembered.generation != generation {
            *remembered = Remembered { generation, ..Remembered::default() };
        }
        remembered
    }

    fn count(&self, is_allowed: bool) -> bool {
        if !is_allowed {
            self.security.denials.fetch_add(1, Ordering::Relaxed);
        }
        is_allowed
    }
}

impl Remembered {
    fn find(&self, right: Right, name: &str) -> Option<bool> {
        let (_, decisions) = self.by_right.iter().find(|(decided, _)| *decided == right)?;
        decisions.get(name).copied()
    }

    fn keep(&mut self, right: Right, name: &str, decided: bool) {
        if name.len() > NAME_BYTES_MAX {
            return;
        }
        if self.count >= REMEMBERED_MAX {
            *self = Self { generation: self.generation, ..Self::default() };
        }
        self.count += 1;
        match self.by_right.iter_mut().find(|(decided, _)| *decided == right) {
            Some((_, decisions)) => drop(decisions.insert(name.into(), decided)),
            None => self.by_right.push((right, HashMap::from([(name.into(), decided)]))),
        }
    }
}

/// What the sender of a request may do. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Rights {
    access: Option<Rc<Access>>,
    /// The decisions that the API is known to ask for.
    declared: &'static [Right],
}

impl Rights {
    pub(crate) fn new(access: Option<&Rc<Access>>, declared: &'static [Right]) -> Self {
        Self { access: access.cloned(), declared }
    }

    /// Whether anything can be denied.
    pub(crate) fn are_restricted(&self) -> bool {
        self.access.is_some()
    }

    /// How often the ACLs have changed: what was decided under another generation is void.
    pub(crate) fn generation(&self) -> u64 {
        self.access.as_ref().map_or(0, |access| access.security.generation())
    }

    /// Whether the sender may do this to the resource of this name.
    pub(crate) fn allow(
        &self,
        resource_type: ResourceType,
        operation: Operation,
        name: &str,
    ) -> bool {
        let right = (resource_type, operation);
        self.note(right);
        self.access.as_ref().is_none_or(|access| access.allows(right, name))
    }

    /// Whether the sender may do this to the cluster.
    pub(crate) fn allow_on_cluster(&self, operation: Operation) -> bool {
        self.allow(ResourceType::Cluster, operation, CLUSTER_NAME)
    }

    /// Whether the sender may do this to any resource of the type (KIP-679).
    pub(crate) fn allow_somewhere(
        &self,
        resource_type: ResourceType,
        operation: Operation,
    ) -> bool {
        let right = (resource_type, operation);
        self.note(right);
        self.access.as_ref().is_none_or(|access| access.allows_somewhere(right))
    }

    /// Whether a list of resources shows this one to the sender.
    pub(crate) fn show(
        &self,
        resource_type: ResourceType,
        operation: Operation,
        name: &str,
    ) -> bool {
        self.note((resource_type, operation));
        self.would_allow(resource_type, operation, name)
    }

    /// What the sender may do to a resource, a bit for each operation (KIP-430).
    pub(crate) fn operations(&self, resource_type: ResourceType, name: &str) -> i32 {
        let operations = resource_type.operations().iter();
        let allowed =
            operations.filter(|operation| self.would_allow(resource_type, **operation, name));
        allowed.fold(0, |bits, operation| bits | operation.bit())
    }

    fn would_allow(&self, resource_type: ResourceType, operation: Operation, name: &str) -> bool {
        let right = (resource_type, operation);
        self.access.as_ref().is_none_or(|access| access.would_allow(right, name))
    }

    /// Holds the handlers to the table of APIs.
    fn note(&self, right: Right) {
        debug_assert!(self.declared.contains(&right), "{right:?} is not in the table of APIs");
        #[cfg(test)]
        ASKED.with_borrow_mut(|asked| asked.insert(right));
    }
}

#[cfg(test)]
thread_local! {
    /// The rights that handlers on this thread have asked for.
    pub(crate) static ASKED: RefCell<std::collections::BTreeSet<Right>> = RefCell::default();
}
