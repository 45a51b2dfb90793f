use std::sync::atomic::{AtomicU64, Ordering};

use moldau_proxy::FilterMetric;

/// What a filter counts; it orders nothing else.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// The counter on the metrics page.
    pub(crate) fn metric(&self, name: &'static str, help: &'static str) -> FilterMetric {
        FilterMetric { name, help, labels: Vec::new(), value: self.get() }
    }
}
