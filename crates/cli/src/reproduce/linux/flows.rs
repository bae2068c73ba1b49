//! The flows of a cell, started as in the measurement.
use super::truth::{Beside, Setting};
use narrows_core::congestion::ControllerConfig;
use narrows_core::registry::Registered;
use narrows_core::{Bytes, Span, Time};
use narrows_scenario::traffic::Thin;
use narrows_scenario::transport::UdpParams;
use narrows_scenario::{Flow, Start, Traffic, Transport};

/// Prefix of the names of bulk flows.
pub(super) const BULK: &str = "bulk";
/// The name of a thin TCP stream.
pub(super) const THIN_TCP: &str = "thin_tcp";
/// Prefix of the names of UDP streams.
pub(super) const UDP: &str = "udp";

/// Bytes of a message of a stream.
const MESSAGE: Bytes = Bytes(100);
/// Interval between messages of a thin stream, and of each UDP flow of T3b.
const THIN_INTERVAL: Span = Span::ms(638);
const CALL_INTERVAL: Span = Span::ms(30);

/// Bulk flows first, then the other flows of the cell. Their base RTTs are the cell's and this time for processing.
pub(super) fn of(setting: &Setting, controllers: &[ControllerConfig], processing: Span) -> Vec<Flow> {
    let rtt = Span::from_secs_f64(setting.rtt_ms / 1e3) + processing;
    let flow = |name: &str, between| flow(setting, name, rtt, between);
    let latest = if setting.flows == 1 { Span::ms(50) } else { Span::s(5) };
    let kinds = controllers.len() as u32;
    let bulk = controllers.iter().zip(0..).map(|(controller, n)| Flow {
        // The flows use the controllers in turn.
        count: setting.flows / kinds + u32::from(n < setting.flows % kinds),
        controller: Some(controller.clone()),
        ..flow(&format!("{BULK}_{}", controller.name()), (Span::ZERO, latest))
    });
    let thin = |interval| Traffic::Thin(Thin { size: MESSAGE, interval, ..Thin::default() });
    let udp = Transport::Udp(UdpParams::default());
    let beside = match setting.beside {
        Beside::Nothing => vec![],
        Beside::ThinStreams => {
            // Each starts at a random time, at least half a second after the start.
            let from = (Span::ms(500), Span::ms(500) + THIN_INTERVAL);
            let tcp = Flow {
                traffic: thin(THIN_INTERVAL),
                controller: ControllerConfig::named("cubic"),
                ..flow(THIN_TCP, from)
            };
            vec![tcp, Flow { traffic: thin(THIN_INTERVAL), transport: udp, ..flow(UDP, from) }]
        }
        Beside::Datagrams(count) => {
            let from = (Span::ZERO, CALL_INTERVAL);
            vec![Flow { count, traffic: thin(CALL_INTERVAL), transport: udp, ..flow(UDP, from) }]
        }
    };
    bulk.filter(|flow| flow.count > 0).chain(beside).collect()
}

/// A TCP flow that starts between these times and runs to the end.
fn flow(setting: &Setting, name: &str, rtt: Span, (from, to): (Span, Span)) -> Flow {
    Flow {
        controller: None,
        start: Start::Uniform(Time::ZERO + from, Time::ZERO + to),
        ..Flow::new(name, rtt, Time::ZERO + Span::from_secs_f64(setting.duration_s))
    }
}

#[cfg(test)]
mod tests {
    use super::super::truth;
    use super::*;

    #[test]
    fn controllers_take_turns_and_streams_come_last() {
        let cells = truth::cells().expect("the embedded files");
        let named = |set: &str, controller: &str| {
            let cell = cells.iter().find(|cell| cell.setting.set == set && cell.setting.controller == controller);
            let setting = &cell.expect("there is one").setting;
            let names = controller.split('+').map(|name| if name == "reno" { "new_reno" } else { name });
            let controllers: Vec<_> = names.map(|name| ControllerConfig::named(name).expect("a controller")).collect();
            of(setting, &controllers, Span::ZERO).into_iter().map(|flow| (flow.name, flow.count)).collect::<Vec<_>>()
        };
        let flows = |list: &[(&str, u32)]| list.iter().map(|&(name, n)| (name.to_owned(), n)).collect::<Vec<_>>();
        assert_eq!(named("T5", "cubic+reno+bbr"), flows(&[("bulk_cubic", 1), ("bulk_new_reno", 1), ("bulk_bbr", 1)]));
        assert_eq!(named("T3a", "reno"), flows(&[("bulk_new_reno", 1), ("thin_tcp", 1), ("udp", 1)]));
        assert_eq!(named("T3b", "reno"), flows(&[("bulk_new_reno", 1), ("udp", 5)]));
        assert_eq!(named("T1", "cubic"), flows(&[("bulk_cubic", 1)]));
    }
}
