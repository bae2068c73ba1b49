//! The scenarios in `examples/`: each shows what its comment and the book say of it, as its own expectations put it.
use crate::support::{Place, json, text};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The scenarios, by name.
fn examples() -> Vec<String> {
    let entries = fs::read_dir(folder()).expect("the examples");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"));
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned())).collect();
    names.sort();
    names
}

#[test]
fn each_example_shows_what_it_promises() {
    let place = Place::new("examples");
    let names = examples();
    assert_eq!(names, ["cellular", "dsl-household", "incast", "lossy-uplink", "satellite", "wifi-last-hop"]);
    for name in names {
        let file = folder().join(format!("{name}.toml"));
        let output = place.run(&["check", &file.to_string_lossy(), "--json"]);
        assert!(output.status.success(), "{name}: {}\n{}", text(&output.stdout), text(&output.stderr));
        let judgements = json(&text(&output.stdout));
        let count = judgements.as_array().map_or(0, Vec::len);
        assert!(count >= 2, "{name} expects {count} things");
    }
}

/// Which of a run's charts the book shows.
const CHARTS: [(&str, &str); 6] = [
    ("cellular", "rtt"),
    ("dsl-household", "queue"),
    ("incast", "queue"),
    ("lossy-uplink", "throughput"),
    ("satellite", "throughput"),
    ("wifi-last-hop", "throughput"),
];

/// The pictures in the book are those that the runs draw. With `NARROWS_RECORD=1` they are written.
#[test]
fn each_example_is_in_the_book_with_its_picture() {
    let place = Place::new("examples-pictures");
    let book = folder().join("../docs/book/src");
    let page = fs::read_to_string(book.join("examples.md")).expect("the page");
    let mut stale = Vec::new();
    for name in examples() {
        assert!(page.contains(&format!("examples/{name}.toml")), "{name} is not on the page");
        let picture = format!("images/example-{name}.svg");
        assert!(page.contains(&format!("({picture})")), "{picture} is not on the page");
        place.ok(&["run", &folder().join(format!("{name}.toml")).to_string_lossy(), "--out", &name]);
        let chart = CHARTS.iter().find(|(of, _)| *of == name).expect("a chart of the example").1;
        let drawn = fs::read(place.path(&name).join(format!("svg/{chart}.svg"))).expect("the run draws it");
        if std::env::var_os("NARROWS_RECORD").is_some() {
            fs::write(book.join(&picture), &drawn).expect("the picture is written");
        }
        if fs::read(book.join(&picture)).expect("the picture") != drawn {
            stale.push(picture);
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?}: if the program is right, NARROWS_RECORD=1 cargo test -p narrows --test cli examples"
    );
}
