//! The virtio-net header that precedes every packet of a TUN device with `IFF_VNET_HDR` (Virtio 1.2 §5.1.6).

/// The work that the kernel leaves to the device, or the device to the kernel: `struct virtio_net_hdr`, in native byte order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Offload {
    /// [`NEEDS_CSUM`](Offload::NEEDS_CSUM) and others.
    pub flags: u8,
    /// The kind of segmentation: one of the `GSO_` constants, perhaps with [`GSO_ECN`](Offload::GSO_ECN).
    pub gso_type: u8,
    /// Length of all headers, bytes. Only a hint: the kernel writes the length of its first contiguous part.
    pub hdr_len: u16,
    /// Payload of a segment, bytes.
    pub gso_size: u16,
    /// Offset of the first byte that the checksum covers.
    pub csum_start: u16,
    /// Offset of the checksum's field from `csum_start`, bytes.
    pub csum_offset: u16,
}

impl Offload {
    /// Length on the device, bytes.
    pub const LEN: usize = 10;
    /// The checksum is partial: its field holds the sum of the pseudo-header, folded and not complemented.
    pub const NEEDS_CSUM: u8 = 1;
    /// Checksums have been found valid.
    pub const DATA_VALID: u8 = 2;
    /// An ordinary packet.
    pub const GSO_NONE: u8 = 0;
    /// TCP over IPv4.
    pub const GSO_TCPV4: u8 = 1;
    /// TCP over IPv6.
    pub const GSO_TCPV6: u8 = 4;
    /// UDP datagrams of equal size, over IPv4 or IPv6.
    pub const GSO_UDP_L4: u8 = 5;
    /// Added for TCP packets with CWR, which only the first segment gets (RFC 3168 §6.1.2).
    pub const GSO_ECN: u8 = 0x80;

    /// From the bytes before a packet.
    pub const fn from_bytes(bytes: [u8; 10]) -> Offload {
        let [flags, gso_type, a, b, c, d, e, f, g, h] = bytes;
        Offload {
            flags,
            gso_type,
            hdr_len: u16::from_ne_bytes([a, b]),
            gso_size: u16::from_ne_bytes([c, d]),
            csum_start: u16::from_ne_bytes([e, f]),
            csum_offset: u16::from_ne_bytes([g, h]),
        }
    }

    /// The bytes before a packet.
    pub const fn to_bytes(self) -> [u8; 10] {
        let [a, b] = self.hdr_len.to_ne_bytes();
        let [c, d] = self.gso_size.to_ne_bytes();
        let [e, f] = self.csum_start.to_ne_bytes();
        let [g, h] = self.csum_offset.to_ne_bytes();
        [self.flags, self.gso_type, a, b, c, d, e, f, g, h]
    }

    /// Whether it has to be segmented.
    pub const fn is_super(self) -> bool {
        self.gso_type != Offload::GSO_NONE
    }

    /// Whether its checksum is partial.
    pub const fn needs_checksum(self) -> bool {
        self.flags & Offload::NEEDS_CSUM != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_and_back(bytes: [u8; 10]) {
            prop_assert_eq!(Offload::from_bytes(bytes).to_bytes(), bytes);
        }
    }

    #[test]
    fn fields_lie_where_the_kernel_has_them() {
        let offload =
            Offload { flags: 1, gso_type: 0x81, hdr_len: 66, gso_size: 1448, csum_start: 34, csum_offset: 16 };
        let bytes = offload.to_bytes();
        assert_eq!(bytes[..2], [1, 0x81]);
        for (at, field) in [(2, 66u16), (4, 1448), (6, 34), (8, 16)] {
            assert_eq!(bytes[at..at + 2], field.to_ne_bytes());
        }
    }
}
