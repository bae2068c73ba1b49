//! Names in the kernel and in file systems.
//!
//! The kernel's table of queueing disciplines is one for all network namespaces, and so are `/sys/fs/bpf` and `/run`. An
//! attachment therefore has a key of its interface, its direction and, outside the first namespace, its namespace.
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which packets of an interface.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Those that it sends.
    Egress,
    /// Those that it receives.
    Ingress,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Egress => "egress",
            Direction::Ingress => "ingress",
        })
    }
}

/// The name of an attachment's files. `namespace` is the inode of a network namespace other than the first.
///
/// Files under `/sys/fs/bpf` must not have a dot in their name, and names of interfaces have neither slash nor colon.
pub fn key(interface: &str, direction: Direction, namespace: Option<u64>) -> String {
    let mut key = interface.replace('%', "%25").replace('.', "%2e");
    if direction == Direction::Ingress {
        key += ":ingress";
    }
    if let Some(inode) = namespace {
        key += &format!(":ns{inode}");
    }
    key
}

/// Names for a qdisc in the kernel, in the order in which they are to be tried: another namespace may have an interface of the
/// same number.
pub fn ids(program: &str, index: u32) -> impl Iterator<Item = String> {
    let name = format!("nw_{program}.{}", index % INDICES);
    std::iter::once(name.clone()).chain(('a'..='z').map(move |letter| format!("{name}{letter}")))
}

/// At most 15 characters of letters, digits, `_` and `.` (`bpf_obj_name_cpy`): `nw_cocoa.` leaves room for five digits and a letter.
const INDICES: u32 = 100_000;

/// Whether this is a name that the kernel gives interfaces (`dev_valid_name`).
pub fn is_interface(name: &str) -> bool {
    let fits = !name.is_empty() && name.len() <= 15 && name != "." && name != "..";
    fits && !name.chars().any(|c| c == '/' || c == ':' || c.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_file_names_and_differ() {
        assert_eq!(key("eth0", Direction::Egress, None), "eth0");
        assert_eq!(key("eth0.7", Direction::Ingress, None), "eth0%2e7:ingress");
        assert_eq!(key("eth0", Direction::Egress, Some(4_026_532_000)), "eth0:ns4026532000");
        assert_ne!(key("a.b", Direction::Egress, None), key("a%2eb", Direction::Egress, None));
    }

    #[test]
    fn ids_fit_the_kernels_field() {
        for program in crate::constants::PROGRAMS {
            for index in [1, 99_999, 100_000, u32::MAX] {
                let ids: Vec<String> = ids(program, index).collect();
                assert!(ids.iter().all(|id| id.len() <= 15), "{ids:?}");
                assert_eq!(ids.len(), 27);
            }
        }
        assert_eq!(ids("cocoa", 3).nth(1).as_deref(), Some("nw_cocoa.3a"));
    }

    #[test]
    fn names_of_interfaces_are_no_paths() {
        assert!(is_interface("eth0.100") && is_interface("wan@x"));
        for name in ["", "a/b", "..", "a b", "a:b", "abcdefghijklmnop"] {
            assert!(!is_interface(name), "{name:?}");
        }
    }
}
