//! Which users may make namespaces, and the messages for those who may not. Systems that forbid something are made with `unshare`
//! and `setpriv`, so these tests run only as root.
use std::process::{Command, Stdio};

use super::roles::{GAIN, VARIABLE};
use super::{Test, skip};

pub(super) const TESTS: &[Test] = &[
    ("root_has_it", root_has_it),
    ("without_capabilities_a_user_namespace_gives_it", without_capabilities_a_user_namespace_gives_it),
    ("no_user_namespaces_is_named", no_user_namespaces_is_named),
    ("no_tun_driver_is_named", no_tun_driver_is_named),
    ("a_tun_driver_for_others_is_named", a_tun_driver_for_others_is_named),
];

/// The output of `gain` in a system that a script makes of this one; `$0` is the program.
fn gain_where(script: &str) -> Option<String> {
    let is_root = rustix::process::geteuid().is_root();
    let tools = ["unshare", "setpriv"];
    let there = |tool: &&str| Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_root || !tools.iter().all(there) {
        skip("making a system that forbids it takes root, unshare and setpriv");
        return None;
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new("sh").args(["-c", script]).arg(program).env(VARIABLE, GAIN).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn expect(script: &str, words: &[&str]) {
    let Some(said) = gain_where(script) else { return };
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

fn root_has_it() {
    expect("exec $0", &["Root\n"]);
}

/// A user without any right; the name root does not help.
const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all";

fn without_capabilities_a_user_namespace_gives_it() {
    // A bare machine may allow only root to open the device, so the test makes one with the mode that distributions use. The
    // program is run by a descriptor, because it may be in a folder that only root may read.
    let open = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200";
    let script = format!("exec unshare --mount sh -c 'exec 3<$0; {open} && exec {NOBODY} /proc/self/fd/3' $0");
    expect(&script, &["UserNamespace\n"]);
}

fn no_user_namespaces_is_named() {
    let none = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all";
    let script = format!("exec unshare --user --map-root-user sh -c '{none} $0' $0");
    expect(&script, &["user.max_user_namespaces is 0", "sysctl user.max_user_namespaces=10000", "As root"]);
}

fn no_tun_driver_is_named() {
    let script = "exec unshare --mount sh -c 'mount -t tmpfs none /dev/net && exec $0' $0";
    expect(script, &["there is no /dev/net/tun", "modprobe tun", "--device /dev/net/tun"]);
}

fn a_tun_driver_for_others_is_named() {
    let hidden = "mount -t tmpfs none /dev/net && touch /dev/net/tun && chmod 600 /dev/net/tun";
    let script = format!("exec unshare --mount sh -c 'exec 3<$0; {hidden} && exec {NOBODY} /proc/self/fd/3' $0");
    expect(&script, &["/dev/net/tun cannot be read and written by this user"]);
}
