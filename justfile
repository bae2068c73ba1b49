# Recipes for people; `just` lists them. What CI runs is in .ci/run.

_default:
    @just --list --unsorted

# The first command: compare the queues there are on one bottleneck.
compare *ARGS:
    cargo run --release -- compare {{ARGS}}

# A program behind a bottleneck: `just shell --queue cocoa -- curl -O http://{peer}/file`, or a shell without one.
shell *ARGS:
    cargo run --release -- shell {{ARGS}}

# All tests.
test *ARGS:
    cargo test --workspace {{ARGS}}

# What review does not need to look for: warnings, and arrows between crates.
lint:
    cargo clippy --workspace --all-targets -- -D warnings
    cargo xtask lfq --check
    cargo xtask arrows

# Format all files, those declared by the registries' macros too.
fmt:
    cargo xtask fmt

# Licences, advisories, sources of dependencies (needs cargo-deny).
deny:
    cargo deny check

# Speed and memory next to a bare loop; `just bench --quick single` for a glance.
bench *ARGS:
    cargo run --profile lto -p narrows-bench -- {{ARGS}}

# A faster binary, optimised for what it does (needs `rustup component add llvm-tools`): target/pgo/lto/narrows.
pgo:
    cargo xtask pgo

# What is handed out, in target/dist: a static program, manual pages, completions, a package for Debian.
dist *ARGS:
    cargo xtask dist {{ARGS}}

# The book as on the web, in target/book, and its links followed.
book:
    cargo book

# Book, playground and schema for a server of static files, in target/site.
site *ARGS:
    cargo xtask site {{ARGS}}

# The same scenarios on Linux's recorded figures, cell by cell.
reproduce WHAT="linux":
    cargo run --release -- reproduce {{WHAT}}

# Random input for a while (needs cargo-fuzz and a nightly toolchain); `just fuzz` lists the targets.
fuzz TARGET="" SECONDS="60":
    cd fuzz && cargo +nightly fuzz {{ if TARGET == "" { "list" } else { "run " + TARGET + " -- -max_total_time=" + SECONDS } }}

# The default comparison, its page opened.
report:
    cargo run --release -- compare
    xdg-open narrows-out/latest/report.html

# The documentation of all crates, private items too.
doc:
    cargo doc --workspace --no-deps --document-private-items

# Everything that must be green before a merge.
ci:
    .ci/run
