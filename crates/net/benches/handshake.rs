//! Processor time that a server spends on one connection's TLS: its handshake, and each MB that
//! it reads and writes after it. Clients run on a thread of their own, which does not count.
//!
//! Run with `cargo bench -p moldau-net --bench handshake`.

use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use moldau_net::Stream;
use moldau_net::tls::{
    ClientAuthentication, ClientTls, ClientTlsSettings, CryptoProvider, Identity, PrincipalMapping,
    ServerTls, ServerTlsSettings, TrustAnchors,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

const HANDSHAKES: u32 = 300;
const MEGABYTES: u32 = 256;
const HOST: &str = "localhost";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    println!("microseconds of a handshake: full, resumed, mutual; of a MB: read, written");
    for provider in [CryptoProvider::AwsLc, CryptoProvider::Ring] {
        for (name, key) in [
            ("P-256", KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?),
            ("RSA 2048", KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048)?),
        ] {
            let world = World::new(provider, &key, false)?;
            let (full, resumed) = (world.handshakes(false)?, world.handshakes(true)?);
            let mutual = World::new(provider, &key, true)?.handshakes(true)?;
            let (read, written) = world.transfer()?;
            let provider = format!("{provider:?}");
            print!("{provider:<6} {name:<8} {full:>6.0} {resumed:>6.0} {mutual:>6.0}");
            println!(" {read:>6.0} {written:>6.0}");
        }
    }
    Ok(())
}

struct World {
    server: ServerTls,
    clients: ClientSettings,
    listener: TcpListener,
    runtime: tokio::runtime::Runtime,
}

/// Makes clients that know nothing of one another's sessions.
type ClientSettings = Arc<dyn Fn() -> Result<ClientTls> + Send + Sync>;

impl World {
    fn new(provider: CryptoProvider, key: &KeyPair, mutual: bool) -> Result<Self> {
        let certificate = CertificateParams::new(vec![HOST.to_owned()])?.self_signed(key)?.pem();
        let pem = key.serialize_pem();
        let root = certificate.clone();
        let identity = move || Identity::from_pem(certificate.as_bytes(), pem.as_bytes());
        let trust = TrustAnchors::from_pem(root.as_bytes())?;
        let client_authentication = match mutual {
            true => ClientAuthentication::Required,
            false => ClientAuthentication::None,
        };
        let server = ServerTls::new(ServerTlsSettings {
            identities: vec![(None, identity()?)],
            client_authentication,
            client_trust: Some(trust.clone()),
            provider,
            principal_mapping: PrincipalMapping::default(),
        })?;
        let clients = Arc::new(move || {
            let identity = mutual.then(&identity).transpose()?;
            let trust = trust.clone();
            let settings = ClientTlsSettings { trust, identity, provider, verify_host_name: true };
            Ok(ClientTls::new(settings)?)
        });
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { server, clients, listener, runtime })
    }

    /// Microseconds of each handshake.
    fn handshakes(&self, resume: bool) -> Result<f64> {
        let address = self.listener.local_addr()?;
        // Settings of their own each time: nothing is resumed.
        let make = Arc::clone(&self.clients);
        let clients = std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let mut client = make()?;
            runtime.block_on(async {
                for _ in 0..HANDSHAKES {
                    if !resume {
                        client = make()?;
                    }
                    let socket = TcpStream::connect(address).await?;
                    let mut stream = client.connect(socket, HOST).await?;
                    stream.read_u8().await?;
                }
                Ok(())
            })
        });
        let mut busy = Duration::ZERO;
        for _ in 0..HANDSHAKES {
            let (socket, _) = self.listener.accept()?;
            let before = processor_time();
            let mut stream = self.accept(socket)?;
            busy += processor_time() - before;
            self.runtime.block_on(async {
                stream.write_u8(0).await?;
                stream.flush().await
            })?;
        }
        clients.join().map_err(|_| "a client panicked")??;
        Ok(busy.as_secs_f64() * 1e6 / f64::from(HANDSHAKES))
    }

    /// Microseconds of each MB read and written.
    fn transfer(&self) -> Result<(f64, f64)> {
        let address = self.listener.local_addr()?;
        let client = (self.clients)()?;
        let clients = std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let socket = TcpStream::connect(address).await?;
                let mut stream = client.connect(socket, HOST).await?;
                let mut megabyte = vec![7; 1 << 20];
                for _ in 0..MEGABYTES {
                    stream.write_all(&megabyte).await?;
                }
                stream.flush().await?;
                for _ in 0..MEGABYTES {
                    stream.read_exact(&mut megabyte).await?;
                }
                Ok(())
            })
        });
        let (socket, _) = self.listener.accept()?;
        let mut stream = self.accept(socket)?;
        let mut megabyte = vec![0; 1 << 20];
        let before = processor_time();
        self.runtime.block_on(async {
            for _ in 0..MEGABYTES {
                stream.read_exact(&mut megabyte).await?;
            }
            Ok::<_, std::io::Error>(())
        })?;
        let between = processor_time();
        self.runtime.block_on(async {
            for _ in 0..MEGABYTES {
                stream.write_all(&megabyte).await?;
            }
            stream.flush().await
        })?;
        let after = processor_time();
        clients.join().map_err(|_| "a client panicked")??;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(MEGABYTES);
        Ok((each(between - before), each(after - between)))
    }

    fn accept(&self, socket: std::net::TcpStream) -> Result<Stream> {
        socket.set_nonblocking(true)?;
        self.runtime.block_on(async {
            let socket = TcpStream::from_std(socket)?;
            socket.set_nodelay(true)?;
            let deadline = Instant::now() + Duration::from_secs(10);
            Ok(self.server.accept(socket, deadline).await?.stream)
        })
    }
}

/// What this thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}
