//! LFQ's policies from their text: `crates/core/src/queue/lfq/*.txt` become `policy.rs` beside them and `lfq_policy.h` for the kernel.
use crate::fmt::Mode;
use crate::root;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Each is a file with a decision tree: `if FEATURE <= NUMBER`, a tree below it, `else`, another tree; or a factor in 256ths.
const POLICIES: [(&str, &str); 2] = [("tree", "The learned tree."), ("rule", "The rule that can be read.")];
/// Most comparisons of one decision.
const DEEPEST: usize = 40;

/// Most bytes of a policy's text; what a compiler makes of it is smaller.
const LARGEST: usize = 4096;

/// A decision tree.
enum Tree {
    Factor(u32),
    If { feature: String, at: u32, then: Box<Tree>, otherwise: Box<Tree> },
}

/// Writes both files, or compares them.
pub(crate) fn policies(mode: Mode) -> Result<String, String> {
    let folder = root().join("crates/core/src/queue/lfq");
    let mut rust = String::from(RUST);
    let mut c = String::from(C);
    for (name, says) in POLICIES {
        let file = folder.join(name).with_extension("txt");
        let text = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        if text.len() > LARGEST {
            return Err(format!("{}: {} B; allowed: {LARGEST}", file.display(), text.len()));
        }
        let mut lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
            .peekable();
        let tree = read(&mut lines, 0, 0).map_err(|message| format!("{}: {message}", file.display()))?;
        if let Some((n, _)) = lines.next() {
            return Err(format!("{}: line {}: the tree has ended", file.display(), n + 1));
        }
        let _ = writeln!(rust, "\n/// {says}\npub fn {name}(f: &Features) -> u32 {{");
        tree.write(&mut rust, 1, &IN_RUST);
        rust.push_str("}\n");
        let _ = writeln!(c, "\n/* {says} */\nstatic inline u32 nw_lfq_{name}(const struct nw_lfq_features *f)\n{{");
        tree.write(&mut c, 1, &IN_C);
        c.push_str("}\n");
    }
    c.push_str("\n#endif\n");
    let rust = formatted(&rust)?;
    let made = [(folder.join("policy.rs"), rust), (root().join("crates/qdisc/c/include/narrows/lfq_policy.h"), c)];
    for (file, text) in &made {
        settle(file, text, mode)?;
    }
    Ok(format!("lfq: {} policies in {} files", POLICIES.len(), made.len()))
}

/// As `cargo xtask fmt` leaves it.
fn formatted(text: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("rustfmt cannot be started: {error}");
    let mut rustfmt = Command::new("rustfmt");
    rustfmt.current_dir(root()).args(["--edition", "2024"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = rustfmt.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(text.as_bytes()).map_err(failed)?;
    }
    let output = child.wait_with_output().map_err(failed)?;
    String::from_utf8(output.stdout).map_err(|error| error.to_string())
}

fn settle(file: &Path, text: &str, mode: Mode) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", file.display());
    match mode {
        Mode::Write => std::fs::write(file, text).map_err(failed),
        Mode::Check if std::fs::read_to_string(file).map_err(failed)? == text => Ok(()),
        Mode::Check => Err(format!("{}: not what the policies' text says, run `cargo xtask lfq`", file.display())),
    }
}

/// Reads a tree whose lines are indented so far.
fn read<'a>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'a str)>>,
    indent: usize,
    depth: usize,
) -> Result<Tree, String> {
    let (n, line) = lines.next().ok_or("a tree is missing at the end")?;
    let wrong = |message: &str| format!("line {}: {message}", n + 1);
    if depth > DEEPEST {
        return Err(wrong("too many comparisons"));
    }
    if line.len() - line.trim_start().len() != 4 * indent {
        return Err(wrong("wrong indentation"));
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["if", feature, "<=", at] => {
            let at = at.parse().map_err(|_| wrong("not a number"))?;
            let then = Box::new(read(lines, indent + 1, depth + 1)?);
            match lines.next() {
                Some((_, line)) if line.trim_end() == format!("{:1$}else", "", 4 * indent) => {}
                _ => return Err(wrong("without `else`")),
            }
            let otherwise = Box::new(read(lines, indent + 1, depth + 1)?);
            Ok(Tree::If { feature: feature.to_owned(), at, then, otherwise })
        }
        [factor] => factor.parse().map(Tree::Factor).map_err(|_| wrong("not a factor")),
        _ => Err(wrong("allowed: `if FEATURE <= NUMBER`, or a factor")),
    }
}

impl Tree {
    /// Writes it as nested conditions, behind `else` if it is the other branch of one.
    fn write(&self, out: &mut String, depth: usize, language: &Language) {
        let tabs = language.indent.repeat(depth);
        let Tree::If { feature, at, then, otherwise } = self else {
            let Tree::Factor(factor) = self else { return };
            let _ = writeln!(out, "{tabs}{}{factor}{}", language.value.0, language.value.1);
            return;
        };
        if !out.ends_with("else ") {
            out.push_str(&tabs);
        }
        let (open, close) = language.condition;
        let compared = if *at == 0 { "==" } else { "<=" };
        let _ = writeln!(out, "if {open}{feature} {compared} {at}{close} {{");
        then.write(out, depth + 1, language);
        let _ = write!(out, "{tabs}}} else ");
        if matches!(**otherwise, Tree::If { .. }) {
            otherwise.write(out, depth, language);
        } else {
            out.push_str("{\n");
            otherwise.write(out, depth + 1, language);
            let _ = writeln!(out, "{tabs}}}");
        }
    }
}

/// How a language spells a tree.
struct Language {
    indent: &'static str,
    condition: (&'static str, &'static str),
    value: (&'static str, &'static str),
}

const IN_RUST: Language = Language { indent: "    ", condition: ("f.", ""), value: ("", "") };
const IN_C: Language = Language { indent: "\t", condition: ("(f->", ")"), value: ("return ", ";") };

const RUST: &str =
    "//! LFQ's policies: the factor of a limit, 256ths. Written by `cargo xtask lfq` from the text beside this file.
use super::Features;
";
const C: &str = "/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * LFQ's policies: the factor of a limit, 256ths. Written by `cargo xtask lfq` from crates/core/src/queue/lfq/.
 */
#ifndef NARROWS_LFQ_POLICY_H
#define NARROWS_LFQ_POLICY_H
";
