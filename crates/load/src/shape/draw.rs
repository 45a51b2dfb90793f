//! Draws the key and the size of each record.

use std::sync::Arc;

use super::{Keys, Shape, Sizes, Trace, whole};
use moldau_measure::statistics::{float, standard_normal};

/// Keeps what is drawn apart from the content, which comes of the same seed.
const SEED_OF_CHOICES: u64 = 0x6368_6f69_6365_0000;

/// Keeps producers, and the records of each, apart: odd, so that no two numbers meet.
const OF_PRODUCER: u64 = 0x9e37_79b9_7f4a_7c15;
const OF_RECORD: u64 = 0xd1b5_4a32_d192_ed03;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The number of its key, if it has one.
    pub key: Option<u32>,
    /// What its value holds.
    pub body: Body,
}

/// What a value holds behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// So much filler that the value has this size.
    Sized(usize),
    /// The line of this number.
    Line(usize),
}

/// What the producers of a run draw from.
#[derive(Debug)]
pub struct Dealer {
    seed: u64,
    keys: Option<KeyDealer>,
    bodies: BodyDealer,
}

#[derive(Debug)]
enum KeyDealer {
    RoundRobin(u32),
    Uniform(u32),
    Weighted(Weighted),
}

#[derive(Debug)]
enum BodyDealer {
    Constant(usize),
    Uniform { min: usize, max: usize },
    Lognormal { median: f64, sigma: f64, min: usize, max: usize },
    Table(Vec<usize>, Weighted),
    Trace(Arc<Trace>, usize),
    Lines(usize),
}

impl Dealer {
    /// What a shape draws from; `None` for one whose records are all alike. Records whose size it
    /// does not decide have `record_bytes`, none has less than `bytes_min`.
    pub fn of(shape: &Shape, record_bytes: usize, bytes_min: usize, seed: u64) -> Option<Self> {
        if shape.is_plain() {
            return None;
        }
        let keys = shape.keys.map(|keys| match keys {
            Keys::RoundRobin { count } => KeyDealer::RoundRobin(count),
            Keys::Uniform { count } => KeyDealer::Uniform(count),
            Keys::Zipf { count, exponent } => {
                let weights: Vec<f64> =
                    (1..=count).map(|rank| f64::from(rank).powf(-exponent)).collect();
                KeyDealer::Weighted(Weighted::new(&weights))
            }
        });
        let lines = shape.corpus.as_ref().filter(|corpus| corpus.lines);
        let trace = shape.trace.as_ref().filter(|trace| trace.content.has_sizes());
        let bodies = match (lines, trace, &shape.sizes) {
            (Some(corpus), ..) => BodyDealer::Lines(corpus.content.line_count()),
            (None, Some(trace), _) => BodyDealer::Trace(Arc::clone(&trace.content), bytes_min),
            (None, None, Some(sizes)) => BodyDealer::of(sizes, bytes_min),
            (None, None, None) => BodyDealer::Constant(record_bytes),
        };
        Some(Self { seed: seed ^ SEED_OF_CHOICES, keys, bodies })
    }

    /// What producer `slice` of `producers` draws.
    pub fn choices(&self, slice: u16, producers: u16) -> Choices<'_> {
        let seed = self.seed.wrapping_add(u64::from(slice).wrapping_mul(OF_PRODUCER));
        Choices { dealer: self, seed, slice: slice.into(), producers: producers.max(1).into() }
    }
}

impl BodyDealer {
    fn of(sizes: &Sizes, bytes_min: usize) -> Self {
        match sizes {
            Sizes::Uniform { min, max } => Self::Uniform { min: *min, max: *max },
            Sizes::Lognormal { median, sigma, max } => Self::Lognormal {
                median: float(*median as u64),
                sigma: *sigma,
                min: bytes_min,
                max: *max,
            },
            Sizes::Table(shares) => {
                let weights: Vec<f64> = shares.iter().map(|it| f64::from(it.weight)).collect();
                let sizes = shares.iter().map(|it| it.bytes).collect();
                Self::Table(sizes, Weighted::new(&weights))
            }
        }
    }
}

/// What one producer draws.
#[derive(Clone, Copy, Debug)]
pub struct Choices<'a> {
    dealer: &'a Dealer,
    seed: u64,
    slice: u64,
    producers: u64,
}

impl Choices<'_> {
    /// The record of this number, from 0.
    pub fn of(&self, number: u64) -> Choice {
        let seed = self.seed.wrapping_add(number.wrapping_mul(OF_RECORD));
        let mut random = fastrand::Rng::with_seed(seed);
        let key = self.dealer.keys.as_ref().map(|keys| match keys {
            KeyDealer::RoundRobin(count) => {
                let place = self.place_among((*count).into()).wrapping_add(number);
                u32::try_from(place % u64::from(*count).max(1)).unwrap_or(0)
            }
            KeyDealer::Uniform(count) => random.u32(..(*count).max(1)),
            KeyDealer::Weighted(weighted) => u32::try_from(weighted.draw(&mut random)).unwrap_or(0),
        });
        let body = match &self.dealer.bodies {
            BodyDealer::Constant(bytes) => Body::Sized(*bytes),
            BodyDealer::Uniform { min, max } => Body::Sized(random.usize(*min..=*max)),
            BodyDealer::Lognormal { median, sigma, min, max } => {
                let bytes = median * (sigma * standard_normal(&mut random)).exp();
                Body::Sized(whole(bytes).clamp(*min, *max))
            }
            BodyDealer::Table(sizes, weighted) => {
                Body::Sized(sizes.get(weighted.draw(&mut random)).copied().unwrap_or_default())
            }
            BodyDealer::Trace(trace, min) => {
                let index = self.slice.wrapping_add(number.wrapping_mul(self.producers));
                Body::Sized(trace.bytes_at(index).max(*min))
            }
            BodyDealer::Lines(count) => {
                let count = (*count).max(1) as u64;
                let index = self.place_among(count).wrapping_add(number) % count;
                Body::Line(usize::try_from(index).unwrap_or(0))
            }
        };
        Choice { key, body }
    }

    /// Where it begins among so many things that all producers go through in turn.
    fn place_among(&self, count: u64) -> u64 {
        count.saturating_mul(self.slice) / self.producers
    }
}

/// The text of a key.
pub fn key_text(number: u32) -> [u8; 8] {
    let mut digits = [b'0'; 8];
    let mut rest = number;
    for digit in digits.iter_mut().rev() {
        *digit += u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    digits
}

/// Draws by weights in constant time: Walker's alias method, whose table is made as Vose does.
#[derive(Debug)]
struct Weighted {
    /// Of each index the share of its column that is its own, and whose the rest is.
    columns: Vec<(f64, usize)>,
}

impl Weighted {
    /// # Panics
    /// Without a weight above 0, which [`Shape::check`] refuses.
    fn new(weights: &[f64]) -> Self {
        let sum: f64 = weights.iter().sum();
        assert!(sum > 0.0, "something can be drawn");
        let count = float(weights.len() as u64);
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight * count / sum).collect();
        let mut columns: Vec<(f64, usize)> = (0..weights.len()).map(|index| (1.0, index)).collect();
        let is_small = |index: &usize| shares.get(*index).is_some_and(|share| *share < 1.0);
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(is_small);
        while let (Some(less), Some(more)) = (small.last().copied(), large.last().copied()) {
            small.pop();
            let (Some(own), Some(column)) = (shares.get(less).copied(), columns.get_mut(less))
            else {
                break;
            };
            *column = (own, more);
            let Some(left) = shares.get_mut(more) else { break };
            *left -= 1.0 - own;
            if *left < 1.0 {
                large.pop();
                small.push(more);
            }
        }
        Self { columns }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> usize {
        let column = random.usize(..self.columns.len());
        let Some((own, other)) = self.columns.get(column) else { return 0 };
        if random.f64() < *own { column } else { *other }
    }
}
