//! The flows of a scenario as kernel sockets can carry them. A flow that they cannot carry is refused before anything runs.
use super::quic::QuicSpec;
use crate::HostError;
use crate::MAX_FLOWS;
use narrows_core::congestion::ControllerConfig;
use narrows_core::params::Params;
use narrows_core::registry::Registered;
use narrows_core::{Dscp, Ecn, Rate, Span, Time};
use narrows_scenario::transport::{Ports, TcpParams, UdpEcn};
use narrows_scenario::{RateSpec, Rtt, Scenario, Traffic, Transport, model};
use narrows_world::application::Application;
use narrows_world::build;
use narrows_world::call::Call;
use narrows_world::record::{self, application::Messages};

/// A connection's unsent data, as time at the rate of the narrowest link on its route.
const AHEAD: Span = Span::ms(20);
/// Limits of the unsent data, bytes. The minimum is one and a half super-packets, so that the sender to a slow link never runs
/// empty.
const UNSENT: (u64, u64) = (96 * 1024, 4 * 1024 * 1024);
/// Longest queue that a QUIC flow's buffers have room for, as time.
const QUEUED: Span = Span::s(1);
/// RFC 6928, Linux's default.
pub(super) const INITIAL_WINDOW: u32 = 10;
/// Linux's default minimum of the retransmission timeout, which is also the highest minimum that a socket can set.
const MIN_RTO: Span = Span::ms(200);

/// One flow, as options for kernel sockets.
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) application: Application,
    pub(super) start: Time,
    pub(super) stop: Time,
    pub(super) dscp: Dscp,
    pub(super) carrier: Carrier,
    /// A call, with the headers of its packets from IP's to RTP's, bytes.
    pub(super) call: Option<(Box<Call>, u32)>,
    /// The messages of a flow that sends some over TCP or QUIC.
    pub(super) messages: Option<Messages>,
}

#[derive(Clone, Debug)]
pub(super) enum Carrier {
    /// The user's program makes its own sockets.
    Program,
    Tcp(TcpSpec),
    Udp(UdpSpec),
    /// A call: datagrams both ways.
    Video(UdpSpec),
    Quic(Box<QuicSpec>),
}

#[derive(Clone, Debug)]
pub(super) struct TcpSpec {
    /// The kernel's name for the congestion control.
    pub(super) controller: &'static str,
    pub(super) ecn: bool,
    /// Pace even if the controller does not ask for it.
    pub(super) pace: bool,
    /// Minimum retransmission timeout, if it differs from the kernel's default.
    pub(super) min_rto: Option<Span>,
    /// Packets.
    pub(super) initial_window: u32,
    /// Size of a full-sized packet at the IP layer, bytes.
    pub(super) packet: u32,
    /// Headers that the scenario counts in a packet. An application's packet becomes the payload that is left without them.
    pub(super) header: u32,
    /// It sends without end: no transfer is complete at any byte.
    pub(super) is_bulk: bool,
    /// Data that may wait in the socket beyond what the window allows to send, bytes.
    pub(super) unsent: u32,
}

impl TcpSpec {
    /// Whether the sender paces.
    pub(super) fn is_paced(&self) -> bool {
        self.pace || self.controller.starts_with("bbr")
    }

    /// Whether the receiver must have the same congestion control. DCTCP's SYN is refused ECN by any other, and only DCTCP's receiver echoes each
    /// mark (RFC 8257 §3.2).
    pub(super) fn takes_both_ends(&self) -> bool {
        self.controller == "dctcp"
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct UdpSpec {
    pub(super) ever_new: bool,
    pub(super) ecn: Ecn,
}

/// All flows of a scenario, in the order of their numbers.
pub(super) fn flows(scenario: &Scenario) -> Result<Vec<Spec>, HostError> {
    let count: usize = scenario.flows.iter().map(|group| group.count as usize).sum();
    if count > MAX_FLOWS {
        return Err(HostError::Unsupported(format!(
            "{count} flows have no ports of their own; the live world has room for {MAX_FLOWS}"
        )));
    }
    let mut names = scenario.flow_names().into_iter();
    let mut specs = Vec::with_capacity(count);
    for group in &scenario.flows {
        let carrier = carrier(scenario, group)?;
        for member in 0..group.count {
            let digits = if count > record::MANY_FLOWS { 1 } else { 3 };
            let call = |video| (Box::new(build::call(scenario, group, member, video, digits)), group.header().0 as u32);
            let video = if let Traffic::Video(video) = &group.traffic { Some(video) } else { None };
            let sends_messages = matches!(group.traffic, Traffic::Thin(_)) && group.command.is_none();
            let is_reliable = matches!(carrier, Carrier::Tcp(_) | Carrier::Quic(_));
            let messages = (sends_messages && is_reliable).then(|| Messages::new(digits));
            let rng = build::member_stream(scenario, group, member, "application");
            specs.push(Spec {
                name: names.next().unwrap_or_default(),
                application: Application::new(&group.traffic, rng),
                start: build::start(scenario, group, member),
                stop: group.stop,
                dscp: group.dscp,
                carrier: carrier.clone(),
                call: video.filter(|_| group.command.is_none()).map(call),
                messages,
            });
        }
    }
    Ok(specs)
}

fn carrier(scenario: &Scenario, group: &model::Flow) -> Result<Carrier, HostError> {
    let refuse = |what: String| HostError::Unsupported(format!("flow `{}`: {what}", group.name));
    if group.command.is_some() {
        return Ok(Carrier::Program);
    }
    match &group.carrier() {
        Transport::Quic(quic) => {
            if group.dscp != Dscp(0) {
                return Err(refuse(
                    "packets of quic have no dscp here, because the transport sets their class; leave it out".into(),
                ));
            }
            if !group.subflow_route.is_empty() {
                return Err(refuse(
                    "both subflows of real traffic take the route of the flow; leave out subflow_route".into(),
                ));
            }
            let spec = QuicSpec::new(quic, group.controller.as_ref(), in_flight(scenario, group));
            Ok(Carrier::Quic(Box::new(spec.map_err(refuse)?)))
        }
        Transport::Udp(udp) => {
            let ecn = match udp.ecn {
                UdpEcn::Off => Ecn::NotEct,
                UdpEcn::Ect0 => Ecn::Ect0,
                UdpEcn::Ect1 => Ecn::Ect1,
            };
            let udp = UdpSpec { ever_new: udp.ports == Ports::EverNew, ecn };
            Ok(match group.traffic {
                Traffic::Video(_) if udp.ever_new => {
                    return Err(refuse("the reports of traffic \"video\" go to one port; leave out ports".into()));
                }
                Traffic::Video(_) => Carrier::Video(udp),
                _ => Carrier::Udp(udp),
            })
        }
        Transport::Tcp(tcp) => {
            refuse_changed_defaults(tcp).map_err(refuse)?;
            Ok(Carrier::Tcp(TcpSpec {
                controller: controller(group.controller.as_ref()).map_err(refuse)?,
                ecn: tcp.ecn,
                pace: tcp.pacing,
                min_rto: (tcp.min_rto != MIN_RTO).then_some(tcp.min_rto),
                initial_window: tcp.initial_window.0,
                packet: tcp.packet.0 as u32,
                header: tcp.header.0 as u32,
                is_bulk: matches!(group.traffic, Traffic::Bulk(_)),
                unsent: unsent(scenario, group),
            }))
        }
    }
}

/// The kernel's name for a controller. The kernel's controllers take no parameters from a scenario.
fn controller(config: Option<&ControllerConfig>) -> Result<&'static str, String> {
    let Some(config) = config else { return Ok("cubic") };
    let changed = config.specs().into_iter().filter_map(|spec| {
        let value = config.get(spec.name)?;
        (value != spec.default).then(|| format!("{} = {value}", spec.name))
    });
    let changed: Vec<String> = changed.collect();
    if !changed.is_empty() {
        let (name, changed) = (config.name(), changed.join(", "));
        return Err(format!("the kernel's {name} takes no parameters; leave out {changed}"));
    }
    Ok(match config.name() {
        "new_reno" => "reno",
        name => name,
    })
}

/// Refuses changed values of parameters that a socket cannot set.
fn refuse_changed_defaults(tcp: &TcpParams) -> Result<(), String> {
    let default = TcpParams::default();
    let names = [
        "ack_every",
        "delayed_ack",
        "quick_acks",
        "receive_buffer",
        "receive_buffer_max",
        "recovery",
        "sack",
        "sack_compression",
    ];
    for name in names {
        let (asked, own) = (tcp.get(name).unwrap_or_default(), default.get(name).unwrap_or_default());
        if asked != own {
            return Err(format!(
                "{name} = {asked} cannot be asked of the kernel's tcp, which has its own; leave it out"
            ));
        }
    }
    Ok(())
}

/// What a flow's path may hold at the highest rate of its narrowest link: a round trip and a second of queue.
fn in_flight(scenario: &Scenario, group: &model::Flow) -> u64 {
    let (Rtt::Fixed(rtt) | Rtt::Uniform(_, rtt)) = group.rtt;
    narrowest(scenario, group).map_or(u64::MAX, |rate| rate.bytes_in(rtt + QUEUED).0)
}

/// The highest rate of the narrowest link on a flow's route.
fn narrowest(scenario: &Scenario, group: &model::Flow) -> Option<Rate> {
    let fastest = |&hop: &usize| match &scenario.hops[hop].rate {
        RateSpec::Schedule(steps) => steps.iter().map(|&(_, rate)| rate).max(),
        trace @ RateSpec::Trace { .. } => Some(trace.initial()),
    };
    group.route.iter().filter_map(fastest).min()
}

/// Unsent data that suffice for the narrowest link of the route at its highest rate. A larger amount would still be sent after
/// the application has stopped.
fn unsent(scenario: &Scenario, group: &model::Flow) -> u32 {
    let ahead = narrowest(scenario, group).map_or(UNSENT.1, |rate| rate.bytes_in(AHEAD).0);
    ahead.clamp(UNSENT.0, UNSENT.1) as u32
}
