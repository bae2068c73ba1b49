//! No frame and no offload header panics whoever reads, marks, segments or joins it; segments have together the super-packet's
//! payload, and joined again they cut into the same segments.
#![no_main]
use libfuzzer_sys::fuzz_target;
use narrows_live::packet_thread::frame::{Header, Join, Offload, Segments, complete_checksum, mark_ce};

fuzz_target!(|input: &[u8]| {
    let Some((&offload, packet)) = input.split_first_chunk::<{ Offload::LEN }>() else { return };
    let offload = Offload::from_bytes(offload);
    if let Ok(header) = Header::read(packet) {
        header.hash(0);
        assert!(!header.key.to_string().is_empty());
    }
    marked(packet);
    let Ok(all) = segments(offload, packet) else { return };
    if !offload.is_super() {
        assert_eq!(all, [(offload, packet.to_vec())]);
        return;
    }
    let mut payload = 0;
    for (own, segment) in &all {
        if let Some(tcp) = Header::read(segment).expect("a segment is a packet").tcp {
            assert!(tcp.payload <= u32::from(offload.gso_size));
            payload += tcp.payload;
        }
        let (mut own, mut segment) = (*own, segment.clone());
        complete_checksum(&mut own, &mut segment).expect("a segment's checksum has its place");
        assert!(!own.needs_checksum());
        marked(&segment);
    }
    if let Some(tcp) = Header::read(packet).expect("a super-packet is a packet").tcp {
        assert_eq!(payload, tcp.payload);
    }
    joined(&all);
});

/// Marks the packet, and holds a right header checksum to remain right.
fn marked(packet: &[u8]) {
    let mut marked = packet.to_vec();
    mark_ce(&mut marked);
    mark_ce(&mut marked);
    let header = |packet: &[u8]| packet.get(..usize::from(packet.first()? & 0xf) * 4).map(ones_sum);
    let v4 = packet.first().is_some_and(|first| first >> 4 == 4);
    if v4 && packet.len() >= 20 && header(packet) == Some(0xffff) {
        assert_eq!(header(&marked), Some(0xffff));
    }
    if let Ok(before) = Header::read(packet) {
        let after = Header::read(&marked).expect("a mark breaks nothing");
        assert_eq!(
            (before.key, before.label, before.dscp, before.tcp),
            (after.key, after.label, after.dscp, after.tcp)
        );
    }
}

fn segments(offload: Offload, packet: &[u8]) -> Result<Vec<(Offload, Vec<u8>)>, ()> {
    let mut segments = Segments::new(offload, packet).map_err(drop)?;
    let (left, mut all, mut out) = (segments.left(), Vec::new(), Vec::new());
    while let Some(offload) = segments.next_into(&mut out) {
        all.push((offload, out.clone()));
    }
    assert_eq!(all.len(), left);
    Ok(all)
}

/// Joins as many segments as go, and cuts the whole again.
fn joined(all: &[(Offload, Vec<u8>)]) {
    let (offload, mut whole) = all[0].clone();
    let Some(mut join) = Join::start(offload, &whole) else { return };
    for (offload, packet) in &all[1..] {
        if !join.takes(*offload, packet) {
            break;
        }
        whole.extend_from_slice(&packet[join.payload_at()..]);
    }
    let packets = join.packets();
    let offload = join.finish(&mut whole);
    let again = segments(offload, &whole).expect("what has been joined can be cut");
    assert_eq!(again, all[..packets]);
}

/// The ones' complement sum of 16-bit words (RFC 1071).
fn ones_sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |sum: u16, pair| {
        let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        sum + u16::from(carry)
    })
}
