//! The book's tables of parameters must equal the output of `narrows list`.
use super::repository;
use crate::support::Place;
use serde_json::Value;
use std::fs;

/// The pages that describe each kind of registered item.
const PAGES: [(&str, &[&str]); 4] = [
    ("queues", &["queues"]),
    ("controllers", &["controllers"]),
    ("traffic", &["traffic"]),
    ("transports", &["tcp", "quic"]),
];

#[test]
fn parameters_are_those_of_narrows_list() {
    let list: Value = serde_json::from_str(&Place::new("docs-list").ok(&["list", "--json"])).expect("JSON");
    let mut wrong = Vec::new();
    for (kind, pages) in PAGES {
        let items = list[kind].as_array().expect("a list of items");
        let mut described: Vec<String> = Vec::new();
        for page in pages {
            let path = repository().join(format!("docs/book/src/{page}.md"));
            let text = fs::read_to_string(&path).expect("the page");
            let right = with_tables(&text, items, &mut described);
            if right != text && std::env::var_os("NARROWS_RECORD").is_some() {
                fs::write(&path, right).expect("the page is written");
            } else if let Some((line, right)) = different(&text, &right) {
                wrong.push(format!("docs/book/src/{page}.md:{line}: should be\n{right}"));
            }
        }
        for item in items {
            let name = word(item, "name");
            if !described.iter().any(|found| found == name) {
                wrong.push(format!("no table of the parameters of {name} in {pages:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nNARROWS_RECORD=1 writes the tables.", wrong.join("\n"));
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("text")
}

/// The page with the heading and table of each section as the registry has them. Adds the names of these sections to `described`.
fn with_tables(page: &str, items: &[Value], described: &mut Vec<String>) -> String {
    let mut right = Vec::new();
    let mut section = None;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((marks, heading)) = line.split_once("# ").filter(|(marks, _)| marks.chars().all(|c| c == '#')) {
            let name = heading.split(' ').next().unwrap_or_default().to_lowercase();
            let found = items.iter().find(|item| word(item, "name") == name);
            if let Some(item) = found {
                section = Some(item);
                if item["params"].as_array().is_some_and(Vec::is_empty) {
                    described.push(name);
                }
                if heading.contains('(') {
                    right.push(format!("{marks}# {} ({})", word(item, "name"), transports(word(item, "summary"))));
                    continue;
                }
            }
        }
        right.push(line.to_string());
        if line.starts_with("| parameter | default | allowed |")
            && let Some(item) = section
        {
            right.extend(lines.next().map(str::to_string));
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
            right.extend(rows(item));
            described.push(word(item, "name").to_string());
        }
    }
    right.join("\n") + "\n"
}

fn rows(item: &Value) -> impl Iterator<Item = String> {
    item["params"].as_array().expect("parameters").iter().map(|param| {
        let cell = |key| word(param, key).replace(" | ", ", ");
        format!("| `{}` | {} | {} | {} |", cell("name"), cell("default"), cell("allowed"), cell("doc"))
    })
}

/// Turns "…: games, voice (TCP, UDP or QUIC)." into "tcp, udp, quic".
fn transports(summary: &str) -> String {
    let (_, list) = summary.rsplit_once('(').expect("a traffic's summary ends with its transports");
    list.trim_end_matches(").").replace(" or ", ", ").to_lowercase()
}

/// The first line that differs, with the right one.
fn different(page: &str, right: &str) -> Option<(usize, String)> {
    let (mut page, mut right) = (page.lines(), right.lines());
    (1..).map(|line| (line, page.next(), right.next())).take_while(|(_, a, b)| a.is_some() || b.is_some()).find_map(
        |(line, page, right)| (page != right).then(|| (line, right.unwrap_or("the end of the page").to_string())),
    )
}
