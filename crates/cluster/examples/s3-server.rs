//! An S3 server for laboratories: `s3-server ADDRESS DIRECTORY`. Objects outlast the process, and
//! nothing is flushed to the disk. Its one bucket is `records`; its keys are those of the tests.

#![expect(clippy::unwrap_used, reason = "what is unexpected ends the server")]

#[path = "../tests/it/s3_server/mod.rs"]
#[expect(dead_code, reason = "the tests use all of it")]
mod s3_server;

/// What the S3 server uses to answer late.
mod faults {
    pub(super) async fn pass(time: std::time::Duration) {
        tokio::time::sleep_until(tokio::time::Instant::now() + time).await;
    }
}

use std::path::PathBuf;

use self::s3_server::S3Server;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().expect("the first argument is an address").parse().unwrap();
    let directory = PathBuf::from(arguments.next().expect("the second argument is a directory"));
    std::fs::create_dir_all(&directory).unwrap();
    let _server = S3Server::start_on(address, directory).await;
    std::future::pending::<()>().await;
}
