//! The cost of a new connection to a front. Connections are opened one after the other, each with
//! its own handshake. Each is closed after the broker's answer to ApiVersions.

use moldau_client::{Address, Connection, ConnectionOptions};

use super::fronts::RunningFront;
use super::rounds::Subject as _;
use moldau_load::generator::{runtime, target};
use moldau_load::run::ConnectionsRecord;
use moldau_measure::Error;
use moldau_measure::cpu::CpuMeter;

/// Opens `count` connections through each front that is a process, forwards and backwards in turn
/// as `round` goes.
///
/// # Errors
/// [`Error::Target`] when a connection fails, [`Error::Machine`] when the front is gone.
pub(super) fn measure(
    fronts: &[RunningFront],
    round: u32,
    count: u32,
) -> Result<Vec<ConnectionsRecord>, Error> {
    let mut order: Vec<&RunningFront> = fronts.iter().collect();
    if !round.is_multiple_of(2) {
        order.reverse();
    }
    let measured = order.into_iter().filter_map(|front| Some((front, front.measured()?)));
    measured.map(|(front, process)| through(front, process, round, count)).collect()
}

fn through(
    front: &RunningFront,
    process: (String, u32),
    round: u32,
    count: u32,
) -> Result<ConnectionsRecord, Error> {
    let failed = target("opening a connection");
    let path = front.path();
    let address: Address = path.bootstrap.parse().map_err(&failed)?;
    let options = (0..count)
        .map(|_| {
            let security = front.fresh_security()?;
            Ok(ConnectionOptions { security, ..ConnectionOptions::default() })
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let runtime = runtime()?;
    let meter = CpuMeter::start(&[process])?;
    for options in &options {
        let opened = runtime.block_on(Connection::connect(&address, options));
        drop(opened.map_err(&failed)?);
    }
    let (usage, _) = meter.stop()?;
    Ok(ConnectionsRecord {
        arm: path.arm.clone(),
        round,
        connections: count,
        cpu_ns: usage.iter().map(|usage| usage.cpu_ns).sum(),
    })
}
