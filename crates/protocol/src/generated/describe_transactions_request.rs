//! `DescribeTransactionsRequest`, versions 0-0, API key 65.

use super::prelude::*;

/// `DescribeTransactionsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeTransactionsRequest {
    /// `TransactionalIds`, versions 0+.
    pub transactional_ids: Vec<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeTransactionsRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("TransactionalIds", Kind::Array(&Kind::Text), 0, 0)
            .of(Entity::TransactionalId)];
}

impl FromWire for DescribeTransactionsRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.transactional_ids = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeTransactionsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.transactional_ids, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeTransactionsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.transactional_ids = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeTransactionsRequest {
    const NAME: &'static str = "DescribeTransactionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for DescribeTransactionsRequest {
    const KEY: ApiKey = ApiKey::DescribeTransactions;
    type Response = super::DescribeTransactionsResponse;
}
