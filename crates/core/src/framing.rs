//! The length of a packet on the wire (Linux `cake_calc_overhead`).

choice! {
    /// How the link layer divides a packet.
    #[derive(Default)]
    pub enum Atm {
        /// Not at all.
        #[default]
        Noatm = "noatm",
        /// Into cells of 53 bytes for each 48 begun.
        Atm = "atm",
        /// 65 bytes for each 64 begun (64b/65b coding).
        Ptm = "ptm",
    }
}

/// What a link adds to its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Framing {
    /// Bytes for headers and trailers of each packet.
    pub overhead: u32,
    /// Minimum length with them, bytes.
    pub mpu: u32,
    /// The division into cells.
    pub atm: Atm,
}

impl Framing {
    /// The length of a packet on the wire, bytes.
    #[inline]
    pub fn length(&self, len: u32) -> u32 {
        let len = len.saturating_add(self.overhead).max(self.mpu);
        match self.atm {
            Atm::Noatm => len,
            Atm::Atm => len.div_ceil(48).saturating_mul(53),
            Atm::Ptm => len.saturating_add(len.div_ceil(64)),
        }
    }

    /// The same for a packet that is sent as `segments` packets with a length of `len` together, all of them full but the last.
    #[inline]
    pub fn length_of(&self, len: u32, segments: u32) -> u32 {
        if segments == 1 {
            return self.length(len);
        }
        let full = len.div_ceil(segments);
        self.length(full) * (segments - 1) + self.length(len - full * (segments - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packets_cost_on_the_wire() {
        let length = |overhead, mpu, atm, len| Framing { overhead, mpu, atm }.length(len);
        assert_eq!(length(0, 0, Atm::Noatm, 1500), 1500);
        // Ethernet with preamble, gap and check sequence: 38 bytes, at least 84.
        assert_eq!([40, 46, 47, 1500].map(|len| length(38, 84, Atm::Noatm, len)), [84, 84, 85, 1538]);
        // PPPoE over ADSL, LLC/SNAP: 40 bytes, whole cells.
        assert_eq!([40, 56, 57, 1492].map(|len| length(40, 0, Atm::Atm, len)), [106, 106, 159, 1696]);
        assert_eq!([64, 65, 1500].map(|len| length(0, 0, Atm::Ptm, len)), [65, 67, 1524]);
    }

    #[test]
    fn every_segment_of_a_large_packet_has_its_own_frame() {
        let ethernet = Framing { overhead: 38, mpu: 84, ..Framing::default() };
        assert_eq!(ethernet.length_of(3000, 2), 2 * 1538);
        assert_eq!(ethernet.length_of(1501, 2), 789 + 788);
        assert_eq!(Framing { atm: Atm::Atm, ..ethernet }.length_of(3000, 2), 2 * 33 * 53);
        assert_eq!(Framing::default().length_of(u32::MAX, 1), u32::MAX);
    }
}
