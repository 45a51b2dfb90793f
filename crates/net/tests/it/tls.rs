//! Handshakes: who is let in, under which name, and who is not.

use std::sync::Arc;

use moldau_net::tls::{
    ClientAuthentication, ClientTls, ClientTlsSettings, CryptoProvider, Identity, PrincipalMapping,
    ServerTls, ServerTlsSettings, TrustAnchors,
};
use moldau_net::{ConnectionLimits, ListenerLimits, Refusal, TlsError};
use p12_keystore::{
    Certificate, KeyStore, KeyStoreEntry, LocalKeyId, Pkcs12ImportPolicy, PrivateKey,
    PrivateKeyChain,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::authority::Authority;
use crate::world::{World, ask, await_refusals, client_tls, is_closed, run, server_settings};

const LOCALHOST: &str = "localhost";

fn start(settings: ServerTlsSettings) -> (World, Arc<ServerTls>) {
    let tls = Arc::new(ServerTls::new(settings).unwrap());
    let (limits, connection_limits) = (ListenerLimits::default(), ConnectionLimits::default());
    (World::start(Some(Arc::clone(&tls)), limits, connection_limits), tls)
}

fn mutual(authority: &Authority, required: bool) -> ServerTlsSettings {
    let client_authentication = match required {
        true => ClientAuthentication::Required,
        false => ClientAuthentication::Requested,
    };
    ServerTlsSettings {
        client_authentication,
        client_trust: Some(authority.trust()),
        ..server_settings(&authority.issue("server", &[LOCALHOST]))
    }
}

async fn about(world: &World, tls: &ClientTls, host: &str) -> Result<String, String> {
    let connected = tls.connect(world.connect().await, host).await;
    let mut stream = connected.map_err(|error| error.to_string())?;
    let answer = ask(&mut stream, b"?").await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(answer).unwrap())
}

#[test]
fn frames_large_and_small_pass_with_either_provider() {
    let authority = Authority::new("ca");
    for (server, client) in [
        (CryptoProvider::AwsLc, CryptoProvider::Ring),
        (CryptoProvider::Ring, CryptoProvider::AwsLc),
    ] {
        let settings = server_settings(&authority.issue("server", &[LOCALHOST]));
        let (world, _) = start(ServerTlsSettings { provider: server, ..settings });
        let settings = ClientTlsSettings {
            trust: authority.trust(),
            identity: None,
            provider: client,
            verify_host_name: true,
        };
        let tls = ClientTls::new(settings).unwrap();
        run(async {
            let mut stream = tls.connect(world.connect().await, LOCALHOST).await.unwrap();
            assert!(stream.is_tls() && stream.as_tcp().is_none());
            let large: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_be_bytes()[3]).collect();
            for frame in [&b"x"[..], &large, b"y"] {
                let (mut reading, mut writing) = tokio::io::split(&mut stream);
                let framed = crate::world::framed(frame);
                let mut answer = vec![0; framed.len()];
                let (sent, received) = tokio::join!(
                    async {
                        writing.write_all(&framed).await?;
                        writing.flush().await
                    },
                    reading.read_exact(&mut answer)
                );
                sent.unwrap();
                received.unwrap();
                assert!(answer == framed);
            }
        });
    }
}

#[test]
fn certificate_makes_the_principal() {
    let authority = Authority::new("ca");
    let (world, tls) = start(mutual(&authority, true));
    let client = client_tls(&authority, Some(&authority.issue("alice", &[])));
    run(async {
        let whole = about(&world, &client, LOCALHOST).await.unwrap();
        assert_eq!(whole, "peer=127.0.0.1 host=localhost user=User:CN=alice,O=Moldau");
        let principal_mapping = PrincipalMapping::parse("RULE:^CN=(.*?),.*$/$1/U").unwrap();
        tls.replace(ServerTlsSettings { principal_mapping, ..mutual(&authority, true) }).unwrap();
        let mapped = about(&world, &client, LOCALHOST).await.unwrap();
        assert_eq!(mapped, "peer=127.0.0.1 host=localhost user=User:ALICE");
        let principal_mapping = PrincipalMapping::parse("RULE:^CN=bob$/bob/").unwrap();
        tls.replace(ServerTlsSettings { principal_mapping, ..mutual(&authority, true) }).unwrap();
        about(&world, &client, LOCALHOST).await.unwrap_err();
        await_refusals(&world.metrics(), Refusal::TlsCertificate, 1).await;
    });
}

#[test]
fn wrong_client_certificates_are_refused_and_counted() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    for required in [true, false] {
        let (world, _) = start(mutual(&authority, required));
        run(async {
            let expired = authority.issue_until("alice", &[], 2020);
            let foreign = other.issue("alice", &[]);
            for (n, own) in [(1, &expired), (2, &foreign)] {
                let client = client_tls(&authority, Some(own));
                about(&world, &client, LOCALHOST).await.unwrap_err();
                await_refusals(&world.metrics(), Refusal::TlsCertificate, n).await;
            }
            let nobody = about(&world, &client_tls(&authority, None), LOCALHOST).await;
            if required {
                nobody.unwrap_err();
                await_refusals(&world.metrics(), Refusal::TlsCertificate, 3).await;
            } else {
                assert!(nobody.unwrap().ends_with("user="), "without a certificate: anonymous");
            }
        });
    }
}

#[test]
fn wrong_server_certificates_are_refused_with_the_cause() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    for (issued, cause) in [
        (authority.issue_until("server", &[LOCALHOST], 2020), "expired"),
        (other.issue("server", &[LOCALHOST]), "UnknownIssuer"),
        (authority.issue("server", &["elsewhere"]), "not valid for name"),
    ] {
        let (world, _) = start(server_settings(&issued));
        run(async {
            let client = client_tls(&authority, None);
            let refused = client.connect(world.connect().await, LOCALHOST).await.unwrap_err();
            assert!(matches!(refused, TlsError::Certificate(_)), "{refused:?}");
            assert!(refused.to_string().contains(cause), "{refused}");
        });
    }
}

#[test]
fn host_name_is_checked_unless_switched_off() {
    let (authority, other) = (Authority::new("ca"), Authority::new("other"));
    let (world, _) = start(server_settings(&authority.issue("server", &["elsewhere"])));
    let client = |authority: &Authority| {
        let trust = authority.trust();
        let provider = CryptoProvider::default();
        let settings =
            ClientTlsSettings { trust, identity: None, provider, verify_host_name: false };
        ClientTls::new(settings).unwrap()
    };
    run(async {
        about(&world, &client(&authority), LOCALHOST).await.unwrap();
        about(&world, &client(&authority), "127.0.0.1").await.unwrap();
        about(&world, &client(&other), LOCALHOST).await.unwrap_err();
        about(&world, &client(&authority), "no host").await.unwrap_err();
    });
}

#[test]
fn host_chooses_the_certificate_and_an_unknown_one_gets_an_alert() {
    let authority = Authority::new("ca");
    let identity = |host: &str| authority.issue(host, &[host]).identity();
    let identities = vec![
        (Some("*.b.test".to_owned()), identity("*.b.test")),
        (Some("A.test".to_owned()), identity("a.test")),
        (Some("x.b.test".to_owned()), identity("x.b.test")),
    ];
    let settings = server_settings(&authority.issue("server", &[LOCALHOST]));
    let (world, tls) = start(ServerTlsSettings { identities, ..settings });
    let client = client_tls(&authority, None);
    run(async {
        for host in ["a.test", "x.b.test", "y.b.test"] {
            let answer = about(&world, &client, host).await.unwrap();
            assert!(answer.contains(&format!("host={host} ")), "{answer}");
        }
        for (n, host) in [(1, "c.test"), (2, "b.test"), (3, "z.y.b.test"), (4, "127.0.0.1")] {
            let refused = about(&world, &client, host).await.unwrap_err();
            assert!(refused.contains("UnrecognisedName"), "{host}: {refused}");
            await_refusals(&world.metrics(), Refusal::TlsServerName, n).await;
        }
        let everyone = server_settings(&authority.issue("server", &["c.test"]));
        tls.replace(everyone).unwrap();
        about(&world, &client, "c.test").await.unwrap();
    });
}

#[test]
fn certificate_is_replaced_while_connections_go_on() {
    let (before, after) = (Authority::new("before"), Authority::new("after"));
    let (world, tls) = start(server_settings(&before.issue("server", &[LOCALHOST])));
    run(async {
        let client = client_tls(&before, None);
        let mut stands = client.connect(world.connect().await, LOCALHOST).await.unwrap();
        ask(&mut stands, b"one").await.unwrap();

        let unusable = ServerTlsSettings {
            client_authentication: ClientAuthentication::Required,
            ..server_settings(&after.issue("server", &[LOCALHOST]))
        };
        let refused = tls.replace(unusable).unwrap_err();
        assert!(matches!(refused, TlsError::Settings(_)), "{refused}");
        about(&world, &client_tls(&before, None), LOCALHOST).await.unwrap();

        tls.replace(server_settings(&after.issue("server", &[LOCALHOST]))).unwrap();
        assert_eq!(ask(&mut stands, b"two").await.unwrap(), b"two");
        about(&world, &client_tls(&after, None), LOCALHOST).await.unwrap();
        about(&world, &client_tls(&before, None), LOCALHOST).await.unwrap_err();
        let settings = ClientTlsSettings {
            trust: after.trust(),
            identity: None,
            provider: CryptoProvider::default(),
            verify_host_name: true,
        };
        client.replace(settings).unwrap();
        about(&world, &client, LOCALHOST).await.unwrap();
    });
}

#[test]
fn bytes_that_are_not_tls_are_refused() {
    let authority = Authority::new("ca");
    let (world, _) = start(server_settings(&authority.issue("server", &[LOCALHOST])));
    run(async {
        let mut stream = world.connect().await;
        stream.write_all(&crate::world::framed(b"a Kafka client without TLS")).await.unwrap();
        let mut said = Vec::new();
        // An alert, perhaps, and then the end.
        if stream.read_to_end(&mut said).await.is_ok() {
            assert!(said.is_empty() || said.first() == Some(&21), "{said:?}");
        }
        await_refusals(&world.metrics(), Refusal::TlsHandshake, 1).await;
        assert_eq!(world.metrics().refused(Refusal::TlsCertificate), 0);
        assert!(is_closed(&mut stream).await);
    });
}

#[test]
fn key_stores_of_pkcs_12_are_read() {
    let authority = Authority::new("ca");
    let (server, alice) = (authority.issue("server", &[LOCALHOST]), authority.issue("alice", &[]));
    let store = |issued: &crate::authority::Issued| {
        let own = Certificate::from_der(&issued.der).unwrap();
        let root = Certificate::from_der(&authority.der).unwrap();
        let key = PrivateKey::from_der(&issued.key.serialize_der()).unwrap();
        let chain = PrivateKeyChain::new(LocalKeyId(vec![1]), key, [own, root]);
        let mut store = KeyStore::new();
        store.add_entry("own", KeyStoreEntry::PrivateKeyChain(chain));
        store.writer("changeit").write().unwrap()
    };
    let mut trust = KeyStore::new();
    let root = Certificate::from_der(&authority.der).unwrap();
    trust.add_entry("root", KeyStoreEntry::Certificate(root));
    let trust = trust.writer("changeit").write().unwrap();
    assert!(KeyStore::from_pkcs12(&trust, "changeit", Pkcs12ImportPolicy::Strict).is_ok());

    let identity = Identity::from_pkcs12(&store(&server), "changeit").unwrap();
    let (world, _) = start(ServerTlsSettings {
        identities: vec![(None, identity)],
        client_trust: Some(TrustAnchors::from_pkcs12(&trust, "changeit").unwrap()),
        ..mutual(&authority, true)
    });
    let settings = ClientTlsSettings {
        trust: TrustAnchors::from_pkcs12(&trust, "changeit").unwrap(),
        identity: Some(Identity::from_pkcs12(&store(&alice), "changeit").unwrap()),
        provider: CryptoProvider::default(),
        verify_host_name: true,
    };
    let client = ClientTls::new(settings).unwrap();
    run(async {
        assert!(about(&world, &client, LOCALHOST).await.unwrap().contains("CN=alice"));
    });

    let wrong = Identity::from_pkcs12(&store(&server), "guess").unwrap_err();
    assert!(matches!(wrong, TlsError::Material { .. }), "{wrong}");
    assert!(Identity::from_pkcs12(&trust, "changeit").is_err());
    assert!(TrustAnchors::from_pkcs12(b"text", "changeit").is_err());
}

#[test]
fn unusable_material_is_named() {
    let authority = Authority::new("ca");
    let (one, two) = (authority.issue("one", &[]), authority.issue("two", &[]));
    let key = two.key.serialize_pem();
    let mismatch = Identity::from_pem(one.pem.as_bytes(), key.as_bytes()).unwrap();
    let settings =
        ServerTlsSettings { identities: vec![(None, mismatch)], ..server_settings(&one) };
    assert!(matches!(ServerTls::new(settings), Err(TlsError::Material { .. })));

    let encrypted =
        b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let refused = Identity::from_pem(one.pem.as_bytes(), encrypted).unwrap_err();
    assert!(refused.to_string().contains("encrypted"), "{refused}");
    assert!(Identity::from_pem(b"", key.as_bytes()).is_err());
    assert!(Identity::from_pem(one.pem.as_bytes(), b"").is_err());
    assert!(TrustAnchors::from_pem(key.as_bytes()).is_err());
    let shown = format!("{:?}", one.identity());
    assert_eq!(shown, "Identity { certificates: 1, .. }");
}
