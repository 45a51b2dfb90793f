//! One access control list entry in Kafka's terms (KIP-11, KIP-290 prefixes), and the filters by
//! which clients name many.
//!
//! The numbers are those of Kafka's protocol, and of the journal.

use std::net::IpAddr;

/// The name of every resource, and the host of every client, in an ACL.
pub(crate) const WILDCARD: &str = "*";

/// The principal of everyone.
pub(crate) const WILDCARD_PRINCIPAL: &str = "User:*";

/// The one resource of type [`ResourceType::Cluster`].
pub(crate) const CLUSTER_NAME: &str = "kafka-cluster";

/// Kafka's number for what a filter does not restrict.
const ANY_CODE: i8 = 1;

/// Kafka's number for the pattern of a filter that finds all patterns which cover a name.
const MATCH_CODE: i8 = 2;

/// An enum whose variants have numbers in Kafka's protocol.
macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum $name {
            $($variant,)*
        }

        impl $name {
            /// Every variant, in the order of numbers.
            pub(crate) const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Kafka's number.
            pub(crate) const fn code(self) -> i8 {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// The variant of a number.
            pub(crate) fn of(code: i8) -> Option<Self> {
                Self::ALL.iter().copied().find(|it| it.code() == code)
            }
        }
    };
}

coded! {
    /// What is guarded.
    ResourceType {
        Topic = 2,
        Group = 3,
        Cluster = 4,
        TransactionalId = 5,
        DelegationToken = 6,
        User = 7,
    }
}

coded! {
    /// How the name in an ACL stands for names of resources.
    PatternType {
        Literal = 3,
        Prefixed = 4,
    }
}

coded! {
    /// What is done to a resource. `All` stands in ACLs only.
    Operation {
        All = 2,
        Read = 3,
        Write = 4,
        Create = 5,
        Delete = 6,
        Alter = 7,
        Describe = 8,
        ClusterAction = 9,
        DescribeConfigs = 10,
        AlterConfigs = 11,
        IdempotentWrite = 12,
        CreateTokens = 13,
        DescribeTokens = 14,
        TwoPhaseCommit = 15,
    }
}

coded! {
    /// Whether an ACL grants or takes.
    Permission {
        Deny = 2,
        Allow = 3,
    }
}

impl ResourceType {
    /// The operations that have a meaning for resources of the type, as Kafka reports them in
    /// fields of authorised operations.
    pub(crate) fn operations(self) -> &'static [Operation] {
        use Operation as It;
        match self {
            Self::Topic => &[
                It::Read,
                It::Write,
                It::Create,
                It::Describe,
                It::Delete,
                It::Alter,
                It::DescribeConfigs,
                It::AlterConfigs,
            ],
            Self::Group => {
                &[It::Read, It::Describe, It::Delete, It::DescribeConfigs, It::AlterConfigs]
            }
            Self::Cluster => &[
                It::Create,
                It::ClusterAction,
                It::DescribeConfigs,
                It::AlterConfigs,
                It::IdempotentWrite,
                It::Alter,
                It::Describe,
            ],
            Self::TransactionalId => &[It::Describe, It::Write, It::TwoPhaseCommit],
            Self::DelegationToken => &[It::Describe],
            Self::User => &[It::CreateTokens, It::DescribeTokens],
        }
    }
}

impl Operation {
    /// The bit of the operation in a field of authorised operations (KIP-430).
    pub(crate) fn bit(self) -> i32 {
        1 << i32::from(self.code())
    }
}

/// The resources that an ACL is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ResourcePattern {
    pub(crate) resource_type: ResourceType,
    pub(crate) pattern_type: PatternType,
    pub(crate) name: String,
}

/// Who may do what from where, or may not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AccessControlEntry {
    /// As Kafka writes it: `User:alice`.
    pub(crate) principal: String,
    pub(crate) host: String,
    pub(crate) operation: Operation,
    pub(crate) permission: Permission,
}

/// One ACL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Acl {
    pub(crate) pattern: ResourcePattern,
    pub(crate) entry: AccessControlEntry,
}

/// Who asks, and from where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// As Kafka writes it: `User:alice`.
    pub(crate) principal: String,
    pub(crate) address: IpAddr,
}

impl AccessControlEntry {
    /// Whether the entry is about the subject.
    pub(crate) fn names(&self, subject: &Subject) -> bool {
        (self.principal == WILDCARD_PRINCIPAL || self.principal == subject.principal)
            && (self.host == WILDCARD || self.is_from(subject.address))
    }

    /// Whether the host is this address, which an IPv4 one may be in the form of IPv6 too.
    fn is_from(&self, address: IpAddr) -> bool {
        self.host.parse().is_ok_and(|host: IpAddr| host.to_canonical() == address.to_canonical())
    }

    /// Whether the entry decides about the operation: what may be read, written, deleted or altered
    /// may be described, but who must not read may still describe.
    pub(crate) fn covers(&self, operation: Operation) -> bool {
        use Operation as It;
        if self.operation == It::All || self.operation == operation {
            return true;
        }
        let implied = match operation {
            It::Describe => {
                matches!(self.operation, It::Read | It::Write | It::Delete | It::Alter)
            }
            It::DescribeConfigs => self.operation == It::AlterConfigs,
            _ => false,
        };
        implied && self.permission == Permission::Allow
    }
}

/// The number of a filter that does not restrict anything, or that of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted<T> {
    Any,
    One(T),
}

impl<T: PartialEq> Wanted<T> {
    fn of(code: i8, one: impl FnOnce(i8) -> Option<T>) -> Option<Self> {
        match code {
            ANY_CODE => Some(Self::Any),
            code => one(code).map(Self::One),
        }
    }

    fn takes(&self, value: &T) -> bool {
        match self {
            Self::Any => true,
            Self::One(wanted) => wanted == value,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WantedPattern {
    Any,
    Match,
    One(PatternType),
}

/// Which ACLs a client asks for.
#[derive(Clone, Debug)]
pub(crate) struct AclFilter {
    resource_type: Wanted<ResourceType>,
    pattern_type: WantedPattern,
    name: Option<String>,
    principal: Option<String>,
    host: Option<String>,
    operation: Wanted<Operation>,
    permission: Wanted<Permission>,
}

/// The fields of a filter as they stand in a request.
pub(crate) struct FilterFields {
    pub(crate) resource_type: i8,
    pub(crate) pattern_type: i8,
    pub(crate) name: Option<String>,
    pub(crate) principal: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) operation: i8,
    pub(crate) permission: i8,
}

impl AclFilter {
    /// The filter of a request; `None` where a number means nothing.
    pub(crate) fn of(fields: FilterFields) -> Option<Self> {
        Some(Self {
            resource_type: Wanted::of(fields.resource_type, ResourceType::of)?,
            pattern_type: match fields.pattern_type {
                ANY_CODE => WantedPattern::Any,
                MATCH_CODE => WantedPattern::Match,
                code => WantedPattern::One(PatternType::of(code)?),
            },
            name: fields.name,
            principal: fields.principal,
            host: fields.host,
            operation: Wanted::of(fields.operation, Operation::of)?,
            permission: Wanted::of(fields.permission, Permission::of)?,
        })
    }

    /// The only name that patterns can have which the filter takes, if there is one.
    pub(crate) fn exact_name(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.pattern_type != WantedPattern::Match)
    }

    /// Whether the filter takes ACLs of a pattern.
    pub(crate) fn takes_pattern(
        &self,
        resource_type: ResourceType,
        pattern_type: PatternType,
        name: &str,
    ) -> bool {
        let is_named = || self.name.as_ref().is_none_or(|wanted| wanted == name);
        self.resource_type.takes(&resource_type)
            && match self.pattern_type {
                WantedPattern::Any => is_named(),
                WantedPattern::One(wanted) => wanted == pattern_type && is_named(),
                WantedPattern::Match => self.is_covered_by(pattern_type, name),
            }
    }

    /// Whether the filter takes the entry, once it takes its pattern.
    pub(crate) fn takes_entry(&self, entry: &AccessControlEntry) -> bool {
        self.principal.as_ref().is_none_or(|principal| *principal == entry.principal)
            && self.host.as_ref().is_none_or(|host| *host == entry.host)
            && self.operation.takes(&entry.operation)
            && self.permission.takes(&entry.permission)
    }

    fn is_covered_by(&self, pattern_type: PatternType, name: &str) -> bool {
        let Some(wanted) = &self.name else { return true };
        match pattern_type {
            PatternType::Literal => wanted == name || name == WILDCARD,
            PatternType::Prefixed => wanted.starts_with(name),
        }
    }
}
