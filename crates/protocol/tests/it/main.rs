//! Hostile bytes against the public decoders.

mod decode;
mod hostile;
