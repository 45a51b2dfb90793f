//! The laboratory: workload, schedule, histograms, ledger, statistics and report.
