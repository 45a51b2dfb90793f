//! Consumer groups and producer ids as pure state machines.
