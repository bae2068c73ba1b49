//! Without root, and without user namespaces. Root becomes the user nobody with `setpriv`.
use super::{Running, is_result, is_root, is_there, skip};
use crate::support::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

const NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all";

fn can_be_nobody() -> bool {
    let tools = ["setpriv", "unshare"].iter().all(|tool| is_there(tool));
    if !tools {
        skip("there is no setpriv or no unshare");
    }
    is_root() && tools
}

/// A shell script that runs the program by file descriptor 3, because the program may be in a folder that only root may read.
fn script(text: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-c", &format!("exec 3<\"$0\"; {text}"), env!("CARGO_BIN_EXE_narrows")]).stdin(Stdio::null());
    command
}

/// A folder that every user may write to; removed at the end.
struct Anybodys(std::path::PathBuf);

impl Anybodys {
    fn new(name: &str) -> Anybodys {
        let dir = std::env::temp_dir().join(format!("narrows-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a folder");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).expect("it is ours");
        Anybodys(dir)
    }
}

impl Drop for Anybodys {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn nobody_meets_a_program_of_its_own() {
    if !can_be_nobody() {
        return;
    }
    let (place, dir) = (Place::new("shell-nobody"), Anybodys::new("nobody"));
    let out = dir.0.display();
    // The peer refuses the connection, so it was reached. Within a shell another shell is possible.
    let connect = "bash -c 'id -u; exec 3<>/dev/tcp/{peer}/9'";
    let plain = format!("cd /; exec {NOBODY} /proc/self/fd/3 shell --rtt 10ms --out {out}/plain -- {connect}");
    let ended = Running::start(&place, "plain", script(&plain)).ends();
    let may = !ended.stderr.contains("this system does not allow one") && !ended.stderr.contains("cannot be read");
    if !may {
        return skip(&ended.stderr);
    }
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), "65534\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("refused"), "{}", ended.stderr);
    assert!(is_result(&dir.0.join("plain")));
    if !is_there("perl") {
        return skip("there is no perl, to serve");
    }
    let serve = "perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 1, LocalPort => 7, ReuseAddr => 1); \
                 $c = $l->accept; print $c \"met\\n\"; <$c>'";
    // It is waited for while it does not listen yet.
    place.write("serve", &format!("sleep 0.5; exec {serve}\n"));
    fs::copy(place.path("serve"), dir.0.join("serve")).expect("a file");
    let client = "bash -c 'exec 4<>/dev/tcp/{peer}/7 && read -r word <&4 && echo $word'";
    let served = format!(
        "cd /; exec {NOBODY} /proc/self/fd/3 shell --rtt 10ms --out {out}/served --peer 'bash {out}/serve' -- {client}"
    );
    let ended = Running::start(&place, "served", script(&served)).ends().ok();
    assert_eq!(ended.stdout, "met\n");
}

#[test]
fn who_may_neither_way_is_told() {
    if !can_be_nobody() {
        return;
    }
    let place = Place::new("shell-forbidden");
    // In the test's own user namespace, whose limit affects nobody else.
    let none = "echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all";
    let text =
        format!("exec unshare --user --map-root-user bash -c '{none} /proc/self/fd/3 shell --out /nowhere -- true'");
    let ended = Running::start(&place, "out", script(&text)).ends();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    for part in ["user namespace", "user.max_user_namespaces is 0", "sysctl", "As root"] {
        assert!(ended.stderr.contains(part), "no `{part}` in {}", ended.stderr);
    }
}
