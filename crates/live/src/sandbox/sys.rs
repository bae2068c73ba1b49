//! The system calls that the compiler cannot check, each with the reason why it is sound here.
#![expect(unsafe_code, reason = "ioctls with a structure of ours, fork, and unshare have no safe form")]
use std::ffi::{c_int, c_short};
use std::fs::File;
use std::io;

use rustix::ioctl::{IntegerSetter, Setter, Updater, ioctl, opcode};
use rustix::thread::UnshareFlags;

/// Leaves namespaces for new ones.
///
/// # Panics
/// When asked to unshare the table of file descriptors, which is what makes the call unsafe.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    assert!(!flags.contains(UnshareFlags::FILES), "the table of file descriptors stays shared");
    // SAFETY: what makes the call unsafe is only FILES, which was ruled out.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// `struct ifreq` of `linux/if.h`: a name and a union of 24 bytes on 64-bit machines, 16 on others.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    flags: c_short,
    rest: [u8; 22],
}

const _: () = assert!(size_of::<InterfaceRequest>() >= size_of::<libc::ifreq>());

/// `_IOW('T', 202, int)`.
const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 202);
/// `_IOW('T', 208, unsigned int)`.
const TUNSETOFFLOAD: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 208);
/// `_IOW('T', 216, int)`.
const TUNSETVNETHDRSZ: rustix::ioctl::Opcode = opcode::write::<c_int>(b'T', 216);

/// Makes `tun`, an open `/dev/net/tun`, a device: its name, where `wanted` may hold one `%d` for a number.
pub(super) fn attach(tun: &File, wanted: &str, flags: c_int) -> io::Result<String> {
    let mut request = InterfaceRequest { name: [0; 16], flags: flags as c_short, rest: [0; 22] };
    if wanted.len() >= request.name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a device's name has at most 15 bytes"));
    }
    request.name[..wanted.len()].copy_from_slice(wanted.as_bytes());
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq`; ours is at least as long, and any bytes are valid in it.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, _>::new(&mut request)) }?;
    let len = request.name.iter().position(|&b| b == 0).unwrap_or(request.name.len());
    Ok(String::from_utf8_lossy(&request.name[..len]).into_owned())
}

/// How many bytes of offload header precede every packet of a device.
pub(super) fn set_header_len(tun: &File, bytes: c_int) -> io::Result<()> {
    // SAFETY: TUNSETVNETHDRSZ reads one int.
    Ok(unsafe { ioctl(tun, Setter::<TUNSETVNETHDRSZ, c_int>::new(bytes)) }?)
}

/// What a device may leave to whoever reads it, as a set of `TUN_F_*`.
pub(super) fn set_offloads(tun: &File, bits: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes a number in place of a pointer and follows none.
    Ok(unsafe { ioctl(tun, IntegerSetter::<TUNSETOFFLOAD>::new_usize(bits as usize)) }?)
}
