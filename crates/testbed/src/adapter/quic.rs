//! What the adapters of quinn-proto and noq-proto share, which have one origin and nearly one interface.
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Flow-control windows that no case fills, bytes.
pub(super) const WINDOW: u32 = 1 << 25;
/// The application writes in such pieces, bytes.
pub(super) static PIECE: [u8; 1 << 16] = [7; 1 << 16];
/// Seeds of the two ends' own random numbers.
pub(super) const SEEDS: [[u8; 32]; 2] = [[1; 32], [2; 32]];

/// The address of an end.
pub(super) fn address(host: u8) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, host), 4433).into()
}

/// The origin of a stack's clock, from which only differences are taken.
#[expect(clippy::disallowed_methods, reason = "the stack has no other way to make an instant")]
pub(super) fn origin() -> std::time::Instant {
    std::time::Instant::now()
}

/// A span of the testbed as the standard library's.
pub(super) fn duration(span: narrows_core::Span) -> Duration {
    Duration::from_nanos(span.as_ns())
}

/// Defines `Quic`, an end of a connection, and `ends`, which makes both. The arguments are the crate and the expressions that differ.
macro_rules! quic_peer {
    (
        $quic:ident,
        endpoint($config:ident, $server:ident) => $endpoint:expr,
        path($remote:ident) => $($path:expr),+;
        single => $single:expr,
        shown($connection:ident) => $shown:expr,
    ) => {
        use crate::adapter::{quic, tls};
        use crate::{Bytes, Datagram, Ecn, Peer, Shown, Span, Stream, Time};
        use $quic::congestion::ControllerFactory;
        use $quic::crypto::rustls::{QuicClientConfig, QuicServerConfig};
        use $quic::{
            ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint, Endpoint, EndpointConfig, Event,
            ServerConfig, StreamId, TransportConfig,
        };
        use std::net::SocketAddr;
        use std::sync::Arc;
        use std::time::Instant;

        /// An endpoint and its connection.
        pub struct Quic {
            endpoint: Endpoint,
            connection: Option<(ConnectionHandle, Connection)>,
            remote: SocketAddr,
            origin: Instant,
            /// The stream that this end sends.
            sends: Option<StreamId>,
            /// The stream that it reads.
            reads: Option<StreamId>,
            timeout: Option<Time>,
            failed: Option<(Time, String)>,
            /// What the endpoint sends without a connection.
            buffer: Vec<u8>,
        }

        /// Makes both ends of a connection: the client, which sends, and the server. Everything but the windows of flow control is the
        /// stack's default.
        pub fn ends(control: Arc<dyn ControllerFactory + Send + Sync>) -> [Box<dyn Peer>; 2] {
            let (client, server) = tls::configs();
            let mut transport = TransportConfig::default();
            transport
                .stream_receive_window(quic::WINDOW.into())
                .receive_window(quic::WINDOW.into())
                .send_window(quic::WINDOW.into())
                .congestion_controller_factory(control);
            let transport = Arc::new(transport);
            let origin = quic::origin();
            let end = |host: u8, server: Option<Arc<ServerConfig>>| {
                let mut config = EndpointConfig::default();
                config.rng_seed(Some(quic::SEEDS[usize::from(host - 1)]));
                let ($config, $server) = (Arc::new(config), server);
                let (endpoint, remote) = ($endpoint, quic::address(3 - host));
                Quic { endpoint, connection: None, remote, origin, sends: None, reads: None, timeout: None, failed: None, buffer: Vec::new() }
            };
            let server = QuicServerConfig::try_from(server).expect("TLS 1.3 is what QUIC needs");
            let mut server = ServerConfig::with_crypto(Arc::new(server));
            server.transport_config(Arc::clone(&transport));
            let receiver = end(2, Some(Arc::new(server)));
            let mut sender = end(1, None);
            let client = QuicClientConfig::try_from(client).expect("TLS 1.3 is what QUIC needs");
            let mut client = ClientConfig::new(Arc::new(client));
            client.transport_config(transport);
            let connection = sender.endpoint.connect(origin, client, sender.remote, tls::NAME);
            sender.connection = Some(connection.expect("the server's address is one"));
            sender.timeout = Some(Time::ZERO);
            [Box::new(sender), Box::new(receiver)]
        }

        impl Quic {
            fn instant(&self, now: Time) -> Instant {
                self.origin + quic::duration(now.since(Time::ZERO))
            }

            /// Passes what connection and endpoint have for each other, and asks for the next timeout.
            fn settle(&mut self, now: Time) {
                let Some((handle, connection)) = &mut self.connection else { return };
                while let Some(event) = connection.poll_endpoint_events() {
                    if let Some(event) = self.endpoint.handle_event(*handle, event) {
                        connection.handle_event(event);
                    }
                }
                let at = connection.poll_timeout();
                self.timeout = at.map(|at| {
                    let since = at.saturating_duration_since(self.origin).as_nanos() as u64;
                    (Time::ZERO + Span::ns(since)).max(now)
                });
            }

            fn write(&mut self, stream: &mut Stream) {
                let Some((_, connection)) = &mut self.connection else { return };
                if self.sends.is_none() && stream.unwritten() > 0 {
                    self.sends = connection.streams().open(Dir::Uni);
                }
                let Some(id) = self.sends else { return };
                while stream.unwritten() > 0 {
                    let piece = stream.unwritten().min(quic::PIECE.len() as u64) as usize;
                    let Ok(taken @ 1..) = connection.send_stream(id).write(&quic::PIECE[..piece]) else { break };
                    stream.wrote(taken);
                }
            }

            fn read(&mut self, stream: &mut Stream) {
                let Some((_, connection)) = &mut self.connection else { return };
                if self.reads.is_none() {
                    self.reads = connection.streams().accept(Dir::Uni);
                }
                let Some(id) = self.reads else { return };
                let mut incoming = connection.recv_stream(id);
                let Ok(mut chunks) = incoming.read(true) else { return };
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    stream.has_read(chunk.bytes.len());
                }
                let _ = chunks.finalize();
            }
        }

        impl Peer for Quic {
            fn receive(&mut self, datagram: &mut Datagram, now: Time) {
                let (at, ecn) = (self.instant(now), EcnCodepoint::from_bits(datagram.ecn as u8));
                let data = bytes::BytesMut::from(&datagram.bytes[..]);
                let $remote = self.remote;
                match self.endpoint.handle(at, $($path),+, ecn, data, &mut self.buffer) {
                    Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                        if let Some((own, connection)) = &mut self.connection
                            && *own == handle
                        {
                            connection.handle_event(event);
                        }
                    }
                    Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                        self.connection = self.endpoint.accept(incoming, at, &mut self.buffer, None).ok();
                    }
                    // A datagram without a connection is answered by nobody: the other end sends again.
                    Some(DatagramEvent::NewConnection(_) | DatagramEvent::Response(_)) | None => {}
                }
                self.settle(now);
            }

            fn transmit(&mut self, datagram: &mut Datagram, now: Time) -> bool {
                let at = self.instant(now);
                let Some((_, connection)) = &mut self.connection else { return false };
                let transmit = connection.poll_transmit(at, $single, &mut datagram.bytes);
                if let Some(transmit) = &transmit {
                    datagram.ecn = match transmit.ecn {
                        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                        Some(EcnCodepoint::Ce) => Ecn::Ce,
                        None => Ecn::NotEct,
                    };
                }
                let sends = transmit.is_some();
                if !sends {
                    self.settle(now);
                }
                sends
            }

            fn timeout(&self) -> Option<Time> {
                self.timeout
            }

            fn on_timeout(&mut self, now: Time) {
                let at = self.instant(now);
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_timeout(at);
                }
                self.settle(now);
            }

            fn application(&mut self, stream: &mut Stream, now: Time) {
                if let Some((_, connection)) = &mut self.connection {
                    // What other events say is found again in the streams.
                    while let Some(event) = connection.poll() {
                        if let Event::ConnectionLost { reason } = event {
                            self.failed = Some((now, reason.to_string()));
                        }
                    }
                }
                self.write(stream);
                self.read(stream);
                self.settle(now);
            }

            fn shown(&self) -> Shown {
                let Some((_, $connection)) = &self.connection else { return Shown::default() };
                Shown { failed: self.failed.clone(), ..$shown }
            }
        }
    };
}
pub(super) use quic_peer;
