//! The kinds of access links: their framing, in the words of the commands that shape below them, and what decides when they send.
//!
//! Source: the keywords of `tc-cake(8)`. They count from the IP packet, `stab` and our programs from an Ethernet frame.
use super::queues::ETHERNET;
use narrows_core::Rate;
use narrows_core::framing::{Atm, Framing};
use narrows_core::mechanism::MechanismConfig;
use narrows_core::registry::Registered as _;

/// An access link of a kind.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct LinkLayer {
    pub(super) name: &'static str,
    /// What its rate counts beyond the IP packets.
    pub(super) framing: Framing,
    /// The keyword of `cake`.
    cake: &'static str,
    /// The mechanisms that decide when it sends, by their names, down and up; a link without one sends at its rate.
    mechanisms: [Option<&'static str>; 2],
    /// What it is, in words.
    pub(super) about: &'static str,
}

const fn link_layer(
    name: &'static str,
    cake: &'static str,
    [overhead, mpu]: [u32; 2],
    atm: Atm,
    about: &'static str,
) -> LinkLayer {
    LinkLayer { name, framing: Framing { overhead, mpu, atm }, cake, mechanisms: [None; 2], about }
}

/// A link that sends IP packets by this mechanism in both directions.
const fn mechanized(name: &'static str, about: &'static str) -> LinkLayer {
    LinkLayer { mechanisms: [Some(name); 2], ..link_layer(name, "", [0, 0], Atm::Noatm, about) }
}

/// All kinds; the first is the default.
pub(super) const ALL: [LinkLayer; 9] = [
    link_layer("any", "", [0, 0], Atm::Noatm, "IP packets as they are"),
    LinkLayer {
        mechanisms: [None, Some("docsis")],
        ..link_layer(
            "docsis",
            "docsis",
            [18, 64],
            Atm::Noatm,
            "cable: Ethernet frames with their check sequence, requests and grants up",
        )
    },
    link_layer("vdsl", "pppoe-ptm", [30, 0], Atm::Ptm, "VDSL2 with PPPoE, in 65 bytes for each 64"),
    link_layer("adsl", "pppoe-llcsnap", [40, 0], Atm::Atm, "ADSL with PPPoE, in cells of ATM"),
    link_layer("ethernet", "ethernet", [38, 84], Atm::Noatm, "Ethernet with preamble and gap, as on fibre"),
    link_layer("lte", "", [0, 0], Atm::Noatm, "a cell, which counts IP packets"),
    mechanized("cellular", "a cell whose rate varies"),
    mechanized("wifi", "a Wi-Fi station"),
    mechanized("leo", "satellites in low orbit"),
];

/// Bytes that padding adds to the last cell of a packet, at most.
const PADDING: u32 = 47;

impl LinkLayer {
    /// The kind of this name.
    pub(super) fn named(name: &str) -> Option<&'static LinkLayer> {
        ALL.iter().find(|one| one.name == name)
    }

    /// The mechanisms that decide when it sends, down and up.
    pub(super) fn mechanisms(&self) -> [Option<MechanismConfig>; 2] {
        self.mechanisms.map(|name| name.and_then(MechanismConfig::named))
    }

    /// The rate at which a shaper that does not know about the cells of a link keeps below it.
    fn without_cells(&self, rate: Rate) -> Rate {
        let [of, for_each] = match self.framing.atm {
            Atm::Noatm => [1, 1],
            Atm::Atm => [48, 53],
            Atm::Ptm => [64, 65],
        };
        Rate::bit(rate.as_bps() / for_each * of)
    }

    /// Bytes beyond the Ethernet frame.
    fn beyond_ethernet(&self) -> i64 {
        i64::from(self.framing.overhead) - ETHERNET.0 as i64
    }

    fn is_plain(&self) -> bool {
        self.framing == Framing::default()
    }

    /// What `cake` needs for it, before its other words.
    pub(super) fn cake(&self) -> String {
        if self.cake.is_empty() { String::new() } else { format!(" {}", self.cake) }
    }

    /// What the root needs above `htb`, and `htb`'s rate. `stab` does not know PTM.
    pub(super) fn htb(&self, rate: Rate) -> (String, Rate) {
        if self.is_plain() {
            return (String::new(), rate);
        }
        let (layer, rate) = match self.framing.atm {
            Atm::Atm => ("atm", rate),
            Atm::Noatm | Atm::Ptm => ("ethernet", self.without_cells(rate)),
        };
        let mpu = if self.framing.mpu > 0 { format!(" mpu {}", self.framing.mpu) } else { String::new() };
        (format!("stab overhead {}{mpu} linklayer {layer} ", self.beyond_ethernet()), rate)
    }

    /// What `narrows qdisc attach` needs, and its rate. It knows neither cells nor a minimum length, so every packet has the longest padding.
    pub(super) fn attach(&self, rate: Rate) -> (String, Rate) {
        if self.is_plain() {
            return (String::new(), rate);
        }
        let padding = if self.framing.atm == Atm::Atm { PADDING } else { 0 };
        (format!(" --overhead {}", self.beyond_ethernet() + i64::from(padding)), self.without_cells(rate))
    }

    /// The options of `sqm-scripts`, and the rate. They do not know PTM.
    pub(super) fn sqm(&self, rate: Rate) -> (Vec<(&'static str, String)>, Rate) {
        if self.is_plain() {
            return (vec![("linklayer", "none".to_owned())], rate);
        }
        let (layer, rate) = match self.framing.atm {
            Atm::Atm => ("atm", rate),
            Atm::Noatm | Atm::Ptm => ("ethernet", self.without_cells(rate)),
        };
        let mut options = vec![("linklayer", layer.to_owned()), ("overhead", self.framing.overhead.to_string())];
        if self.framing.mpu > 0 {
            options.extend([("linklayer_advanced", "1".to_owned()), ("tcMPU", self.framing.mpu.to_string())]);
        }
        (options, rate)
    }
}
