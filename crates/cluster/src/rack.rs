//! Which broker of a rack caches what, and which one leads what: rendezvous hashing, so that a
//! broker that comes or goes moves little but its own share.

/// The broker among `brokers` that owns `id`, such as a topic id mixed with a partition, or an
/// object's key. The order of the brokers does not matter; none only if there are no brokers.
#[must_use]
pub fn owner(id: u128, brokers: &[i32]) -> Option<i32> {
    brokers.iter().copied().max_by_key(|broker| (weight(id, *broker), *broker))
}

/// The brokers that own each of some ids: each owns as many as any other, or one more. A broker
/// that is full passes an id on to the next one by weight.
#[must_use]
pub fn even_owners(ids: &[u128], brokers: &[i32]) -> Vec<i32> {
    let (Some(share), Some(mut extras)) =
        (ids.len().checked_div(brokers.len()), ids.len().checked_rem(brokers.len()))
    else {
        return Vec::new();
    };
    let mut owned = vec![0; brokers.len()];
    let owner = |id: &u128| {
        let has_room = |at: &usize| owned[*at] < share || (owned[*at] == share && extras > 0);
        let with_room = (0..brokers.len()).filter(has_room);
        // There are as many places as ids.
        let at = with_room.max_by_key(|at| (weight(*id, brokers[*at]), brokers[*at]))?;
        extras -= usize::from(owned[at] == share);
        owned[at] += 1;
        Some(brokers[at])
    };
    ids.iter().filter_map(owner).collect()
}

/// Every broker must compute the same, also those of other versions.
fn weight(id: u128, broker: i32) -> u64 {
    let [a, b] = [id, id >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
    mix(mix(mix(a) ^ b) ^ u64::from(broker.cast_unsigned()))
}

/// Finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_that_leaves_moves_only_its_own_share() {
        let (all, fewer) = ([1, 2, 3, 4], [4, 2, 1]);
        let mut shares = [0; 5];
        for id in 0..4_000 {
            let owner = owner(id << 70, &all).unwrap();
            shares[usize::try_from(owner).unwrap()] += 1;
            let after = super::owner(id << 70, &fewer).unwrap();
            assert!(owner == 3 || owner == after);
        }
        assert!(shares[1..].iter().all(|share| (900..1_100).contains(share)), "{shares:?}");
        assert_eq!(owner(1, &[]), None);
    }

    #[test]
    fn even_owners_own_the_same_number_and_mostly_keep_what_they_own() {
        let (mut stayed, mut left) = (0, 0);
        for topic in 0..500_u128 {
            for count in 1..=16 {
                let ids: Vec<u128> = (0..count).map(|id| (topic << 70) + (id << 64)).collect();
                let all = even_owners(&ids, &[1, 2, 3, 4, 5]);
                let owned = |broker| all.iter().filter(|owner| **owner == broker).count();
                let owned: Vec<usize> = (1..=5).map(owned).collect();
                let (least, most) = (owned.iter().min().unwrap(), owned.iter().max().unwrap());
                assert!(all.len() == ids.len() && most - least <= 1, "{owned:?}");
                let fewer = even_owners(&ids, &[5, 4, 2, 1]);
                for (before, after) in all.iter().zip(&fewer) {
                    stayed += usize::from(before == after);
                    left += usize::from(*before != 3 && before != after);
                }
            }
        }
        // Of two that stay with their broker, less than one is passed on.
        assert!(left * 4 < stayed, "{left} of {stayed}");
        assert_eq!(even_owners(&[1, 2], &[]), [0; 0]);
    }

    #[test]
    fn owners_are_the_same_in_every_version() {
        let owners: Vec<_> = (0..8).map(|id| owner(id, &[1, 2, 3]).unwrap()).collect();
        assert_eq!(owners, [2, 3, 2, 3, 2, 1, 1, 1]);
        let ids: Vec<u128> = (0..8).collect();
        assert_eq!(even_owners(&ids, &[1, 2, 3]), [2, 3, 2, 3, 2, 1, 1, 1]);
    }
}
