//! Addresses for the link between a shell and the network around it. No other shell gets the same ones, so shells nest without
//! address translation.
//!
//! Blocks come from 100.64.0.0/10, the shared address space between a provider and its customers (RFC 6598), which neither the
//! Internet nor a home network uses. A shell gets a /16; a shell in it gets a /20 of that, then a /24, then a /28. The first
//! sixteenth of a block is for its own link: .1 is the outer end, .2 the inner end. The rest is for nested shells, so one route
//! at the outer end reaches all of them. A namespace finds its own block by the address that ends in .2.
//!
//! IPv6 is fd6e:6172:7277::/96 (RFC 4193) with the IPv4 address behind it.
//!
//! The outer end's device reserves the block. It is called `narrowsN`, where N is the block's position in the block around it,
//! and the kernel lets only one device in a network namespace have that name. Two shells that look for a block at the same moment
//! therefore get different ones. Making a device takes `CAP_NET_ADMIN`, so a user without it cannot occupy the names, and the
//! device is removed when the process that made it ends.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::HostError;
use crate::netlink::Netlink;
use crate::{Namespace, Tun, TunSpec, tun};

/// The addresses of one link and of everything behind its inner end. Nothing else in the namespace gets the same addresses while
/// the outer end's device exists.
#[derive(Debug)]
pub struct Block {
    cut: Cut,
}

impl Block {
    /// Takes a block that is free in this namespace by making the link's outer end there. `spec` gives everything about the
    /// device but its name and addresses.
    ///
    /// # Errors
    /// When shells are nested deeper than four, every block is in use, or the device cannot be made.
    pub fn take(namespace: &Namespace, spec: &TunSpec) -> Result<(Block, Tun), HostError> {
        namespace.run(|| {
            let failed = || HostError::system("list the addresses and routes of a namespace");
            let mut netlink = Netlink::open().map_err(failed())?;
            let mut taken = v4(netlink.addresses().map_err(failed())?);
            let own = taken.iter().find_map(|&(address, prefix)| Cut::of_inner(address, prefix));
            taken.iter_mut().for_each(|(_, prefix)| *prefix = 32);
            taken.extend(v4(netlink.destinations().map_err(failed())?));
            let candidates = own.map_or_else(|| Some(Cut::outermost()), Cut::inside);
            let candidates =
                candidates.ok_or_else(|| HostError::Unsupported("shells nest four deep, not deeper".into()))?;
            for cut in candidates.filter(|cut| !taken.iter().any(|&(to, prefix)| cut.holds(to, prefix))) {
                let spec = TunSpec { name: cut.device(), addresses: cut.host(1).to_vec(), ..spec.clone() };
                // Another shell may have taken the block since the addresses were read. Then its device has the name.
                if let Some(device) = tun::make(&spec)? {
                    return Ok((Block { cut }, device));
                }
            }
            Err(HostError::Unsupported("every block of 100.64.0.0/10 is in use here".into()))
        })?
    }

    /// The outer end's addresses, with the prefix that the device reaches: the whole block.
    pub fn outer(&self) -> [(IpAddr, u8); 2] {
        self.cut.host(1)
    }

    /// The inner end's addresses.
    pub fn inner(&self) -> [(IpAddr, u8); 2] {
        self.cut.host(2)
    }
}

/// A part of 100.64.0.0/10.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    base: u32,
    prefix: u8,
}

const WHOLE: Cut = Cut { base: u32::from_be_bytes([100, 64, 0, 0]), prefix: 10 };
/// The prefix length of an outermost block.
const OUTERMOST: u8 = 16;
/// The prefix length of an innermost block: no other block fits into it.
const INNERMOST: u8 = 28;
/// A nested block's prefix has this many bits more than the prefix of the block around it.
const STEP: u8 = 4;
/// fd6e:6172:7277::/96: a locally assigned prefix (RFC 4193); the bytes after fd spell "narrw".
const V6: u128 = 0xfd6e_6172_7277_0000_0000_0000_0000_0000;

impl Cut {
    fn outermost() -> Box<dyn Iterator<Item = Cut>> {
        Box::new(WHOLE.parts(OUTERMOST))
    }

    /// The blocks that fit into this one, without the first sixteenth, which is for the block's own link.
    fn inside(self) -> Option<Box<dyn Iterator<Item = Cut>>> {
        (self.prefix < INNERMOST).then(|| Box::new(self.parts(self.prefix + STEP).skip(1)) as _)
    }

    fn parts(self, prefix: u8) -> impl Iterator<Item = Cut> {
        (0..1u32 << (prefix - self.prefix)).map(move |i| Cut { base: self.base | i << (32 - prefix), prefix })
    }

    /// The block whose inner end has this address.
    fn of_inner(address: u32, prefix: u8) -> Option<Cut> {
        let depth = prefix.checked_sub(OUTERMOST)?;
        let fits = prefix <= INNERMOST && depth % STEP == 0 && WHOLE.holds(address, 32);
        let base = address.checked_sub(2)?;
        (fits && base.trailing_zeros() >= u32::from(32 - prefix)).then_some(Cut { base, prefix })
    }

    /// Whether all of that prefix is within this block.
    fn holds(self, address: u32, prefix: u8) -> bool {
        prefix >= self.prefix && (address ^ self.base) >> (32 - self.prefix) == 0
    }

    /// The name of the outer end's device. Within another block, numbers begin at 1, because part 0 is for that block's own link.
    fn device(self) -> String {
        let parts = if self.prefix == OUTERMOST { OUTERMOST - WHOLE.prefix } else { STEP };
        format!("narrows{}", self.base >> (32 - self.prefix) & ((1 << parts) - 1))
    }

    fn host(self, number: u32) -> [(IpAddr, u8); 2] {
        let v4 = self.base | number;
        let v6 = V6 | u128::from(v4);
        [(Ipv4Addr::from(v4).into(), self.prefix), (Ipv6Addr::from(v6).into(), 96 + self.prefix)]
    }
}

fn v4(all: Vec<(IpAddr, u8)>) -> Vec<(u32, u8)> {
    let only = |(address, prefix)| match address {
        IpAddr::V4(v4) => Some((v4.into(), prefix)),
        IpAddr::V6(_) => None,
    };
    all.into_iter().filter_map(only).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> u32 {
        text.parse::<Ipv4Addr>().unwrap().into()
    }

    fn cut(base: &str, prefix: u8) -> Cut {
        Cut { base: number(base), prefix }
    }

    #[test]
    fn blocks_lie_in_each_other() {
        let outermost: Vec<Cut> = Cut::outermost().collect();
        assert_eq!(outermost.len(), 64);
        assert_eq!((outermost[0], outermost[63]), (cut("100.64.0.0", 16), cut("100.127.0.0", 16)));
        let second: Vec<Cut> = outermost[1].inside().unwrap().collect();
        assert_eq!(second.len(), 15);
        assert_eq!((second[0], second[14]), (cut("100.65.16.0", 20), cut("100.65.240.0", 20)));
        let third = second[0].inside().unwrap().next().unwrap();
        let fourth = third.inside().unwrap().last().unwrap();
        assert_eq!((third, fourth), (cut("100.65.17.0", 24), cut("100.65.17.240", 28)));
        assert!(fourth.inside().is_none());
    }

    #[test]
    fn an_inner_end_is_known_by_its_address() {
        let fourth = cut("100.65.17.240", 28);
        assert_eq!(fourth.host(1)[0], ("100.65.17.241".parse().unwrap(), 28));
        let [(inner, prefix), (six, prefix_six)] = fourth.host(2);
        assert_eq!((inner, prefix), ("100.65.17.242".parse().unwrap(), 28));
        // 100.65.17.242 is 0x644111f2.
        assert_eq!((six, prefix_six), ("fd6e:6172:7277::6441:11f2".parse().unwrap(), 124));
        assert_eq!(Cut::of_inner(number("100.65.17.242"), 28), Some(fourth));
        assert_eq!(Cut::of_inner(number("100.64.0.2"), 16), Some(cut("100.64.0.0", 16)));
        for (other, prefix) in
            [("100.65.17.241", 28), ("100.64.0.2", 18), ("100.64.1.2", 16), ("192.0.2.2", 24), ("100.64.0.2", 32)]
        {
            assert_eq!(Cut::of_inner(number(other), prefix), None, "{other}/{prefix}");
        }
    }

    #[test]
    fn parts_of_one_block_have_devices_of_different_names() {
        let names = |blocks: Box<dyn Iterator<Item = Cut>>| blocks.map(Cut::device).collect::<Vec<_>>();
        let numbered = |numbers: std::ops::Range<u32>| numbers.map(|n| format!("narrows{n}")).collect::<Vec<_>>();
        assert_eq!(names(Cut::outermost()), numbered(0..64));
        for around in [cut("100.65.0.0", 16), cut("100.65.16.0", 20), cut("100.65.17.0", 24)] {
            assert_eq!(names(around.inside().unwrap()), numbered(1..16), "narrows0 is the inner end in {around:?}");
        }
    }

    #[test]
    fn what_is_in_use_is_left() {
        let block = cut("100.64.0.0", 16);
        assert!(block.holds(number("100.64.3.4"), 32) && block.holds(number("100.64.0.0"), 16));
        assert!(!block.holds(number("100.65.0.0"), 16));
        // A provider's route for the whole range does no harm, because the block's route is longer.
        assert!(!block.holds(number("100.64.0.0"), 10));
    }
}
