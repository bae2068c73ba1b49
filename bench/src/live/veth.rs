//! The kernel's own path: veth pairs, and queueing disciplines on them. Only this file starts `ip` and `tc`.
use super::endpoints::{HOSTS, text};
use narrows_host::Namespace;
use rustix::fd::{AsFd, AsRawFd};
use std::process::Command;

/// A veth pair between two namespaces, up. Unless `whole`, the kernel hands over single packets instead of super-packets.
pub(crate) fn pair(ends: [&Namespace; 2], names: [&str; 2], whole: bool) -> Result<(), String> {
    let other = format!("/proc/{}/fd/{}", std::process::id(), ends[1].as_fd().as_raw_fd());
    run(ends[0], &["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1], "netns", &other])?;
    for (end, name) in ends.into_iter().zip(names) {
        if !whole {
            run(end, &["ip", "link", "set", name, "gso_max_segs", "1"])?;
        }
        run(end, &["ip", "link", "set", name, "up"])?;
    }
    Ok(())
}

/// Gives both sides' `veth0` addresses and a route to each other.
pub(crate) fn address(sides: &[Namespace; 2]) -> Result<(), String> {
    for (n, side) in sides.iter().enumerate() {
        let (own, other) = (format!("{}/32", HOSTS[n]), format!("{}/32", HOSTS[1 - n]));
        run(side, &["ip", "address", "add", &own, "dev", "veth0"])?;
        run(side, &["ip", "route", "add", &other, "dev", "veth0", "src", &HOSTS[n].to_string()])?;
    }
    Ok(())
}

/// Two namespaces with a pair between them, with htb and a pfifo at this rate, if there is one.
pub(crate) fn joined(sides: &[Namespace; 2], whole: bool, htb: Option<&str>) -> Result<(), String> {
    pair([&sides[0], &sides[1]], ["veth0", "veth0"], whole)?;
    address(sides)?;
    if let Some(rate) = htb {
        let on = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            run(&sides[0], &words)
        };
        on("tc qdisc add dev veth0 root handle 1: htb default 1")?;
        on(&format!(
            "tc class add dev veth0 parent 1: classid 1:1 htb rate {rate} burst 1mb cburst 1mb quantum 60000"
        ))?;
        on("tc qdisc add dev veth0 parent 1:1 pfifo limit 10000")?;
    }
    Ok(())
}

fn run(namespace: &Namespace, words: &[&str]) -> Result<(), String> {
    // The command runs in the namespace of the thread that starts it.
    let ended = namespace.run(|| Command::new(words[0]).args(&words[1..]).output()).map_err(text)?;
    let output = ended.map_err(|error| format!("`{}`: {error}", words[0]))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("`{}`: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}
