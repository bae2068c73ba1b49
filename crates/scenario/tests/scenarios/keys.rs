//! A key that is declared is read, written, compared, set from the command line, and described in the schema and the book.
use narrows_scenario::keys::{self, Absent, KeySpec, TableSpec};
use narrows_scenario::settings::settings;
use narrows_scenario::{Class, Flow, Hop, NoTraces, Record, Scenario, ScenarioError, schema};

/// A file's tables, each with keys and values.
type File = Vec<(&'static str, Vec<(&'static str, String)>)>;

/// Files to which a key is added. A key that needs others is legal in one of them.
fn files() -> [File; 5] {
    let hop = |name| {
        [("name", name), ("rate", "\"9mbit\""), ("queue", "\"fifo\""), ("delay", "\"20ms\""), ("release", "\"start\"")]
    };
    let file = |flow: &[(&'static str, &str)]| -> File {
        let own = |keys: &[(&'static str, &str)]| keys.iter().map(|&(key, value)| (key, value.to_owned())).collect();
        let common = [("name", "\"f\""), ("rtt", "\"90ms\""), ("route", "[\"a\"]")];
        vec![
            ("scenario", own(&[("duration", "\"50s\"")])),
            ("record", Vec::new()),
            ("hop", own(&hop("\"a\""))),
            ("hop.class", own(&[("name", "\"c\""), ("rate", "\"5mbit\"")])),
            ("hop.class", own(&[("name", "\"rest\""), ("parent", "\"c\""), ("rate", "\"4mbit\"")])),
            ("hop.class", own(&[("name", "\"d\""), ("rate", "\"500kbit\""), ("ceil", "\"9mbit\""), ("dscp", "[46]")])),
            ("hop", own(&hop("\"b\""))),
            ("flow", own(&[&common[..], flow].concat())),
            ("expect", own(&[("that", "\"f.goodput > 1mbit\"")])),
        ]
    };
    let wire = with(&file(&[]), "hop", "release", "\"end\"");
    let changing = with(&wire, "hop", "mechanism", "\"leo\"");
    [file(&[]), file(&[("controller", "\"tonopah\"")]), file(&[("command", "\"true\"")]), wire, changing]
}

fn text(file: &File) -> String {
    let header = |table: &str| match table {
        "scenario" => String::new(),
        "record" => "[record]\n".to_owned(),
        other => format!("[[{other}]]\n"),
    };
    let keys =
        |keys: &[(&str, String)]| keys.iter().map(|(key, value)| format!("{key} = {value}\n")).collect::<String>();
    file.iter().map(|(table, all)| header(table) + &keys(all)).collect()
}

/// The file with a value in the last table of this name.
fn with(file: &File, table: &str, key: &'static str, value: &str) -> File {
    let mut file = file.clone();
    let (_, keys) = file.iter_mut().rfind(|(name, _)| *name == table).expect("every table is there");
    keys.retain(|(other, _)| *other != key);
    keys.push((key, value.to_owned()));
    file
}

fn parse(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, "file.toml", &NoTraces)
}

/// Values of all forms, in TOML; a key takes the first one that is legal and differs.
fn values(spec: &KeySpec) -> Vec<String> {
    let plain = [
        "\"7ms\"",
        "\"40s\"",
        "\"3mbit\"",
        "\"7B\"",
        "3",
        "5",
        "0.25",
        "true",
        "false",
        "[\"b\"]",
        "[44]",
        "\"c\"",
        "\"600kbit\"",
        "\"f.drops == 3\"",
        "\"other one\"",
        "\"rate 3mbit burst 7kb\"",
    ];
    let words = spec.allowed.split(" | ").chain(spec.choices.into_iter().flatten().copied());
    plain.into_iter().map(str::to_owned).chain(words.map(|word| format!("{word:?}"))).collect()
}

/// A scenario before and after a key got another value, that value, and the file before.
fn changed(table: &TableSpec, spec: &KeySpec) -> Option<(Scenario, Scenario, String, File)> {
    files().into_iter().find_map(|file| {
        let before = parse(&text(&file)).expect("it is legal");
        values(spec).into_iter().find_map(|value| {
            let after = parse(&text(&with(&file, table.name, spec.name, &value))).ok()?;
            (after != before).then(|| (before.clone(), after, value, file.clone()))
        })
    })
}

#[test]
fn a_declared_key_is_everywhere() {
    let schema = schema::json_schema();
    for table in keys::tables() {
        let described = match table.name {
            "scenario" => &schema["properties"],
            "record" => &schema["properties"]["record"]["properties"],
            "hop.class" => &schema["properties"]["hop"]["items"]["properties"]["class"]["items"]["properties"],
            other => &schema["properties"][other]["items"]["properties"],
        };
        assert_eq!(described.as_object().map(|keys| keys.len()), Some(table.keys.len()), "{}", table.name);
        for spec in &table.keys {
            let place = format!("{}.{}", table.name, spec.name);
            assert!(described[spec.name]["description"].is_string(), "{place} is not in the schema");
            if spec.is_table {
                continue;
            }
            let (before, after, value, file) =
                changed(&table, spec).unwrap_or_else(|| panic!("no value of {place} found"));
            // It is written, and read back.
            assert!(after.to_toml().contains(&format!("\n{} = ", spec.name)) || spec.name == "name", "{place}");
            assert_eq!(parse(&after.to_toml()), Ok(after.clone()), "{place} = {value}");
            // `diff` sees it.
            let of = [&before, &after];
            let differences = match table.name {
                "scenario" => Scenario::differences(of, of),
                "record" => Record::differences([&before.record, &after.record], of),
                "hop" => Hop::differences([&before.hops[1], &after.hops[1]], of),
                "flow" => Flow::differences([&before.flows[0], &after.flows[0]], of),
                "hop.class" => Class::differences([&before.hops[0].classes[2], &after.hops[0].classes[2]], of),
                // Expectations are no part of what runs.
                _ => continue,
            };
            let difference = differences.iter().find(|difference| difference.key == spec.name);
            assert!(difference.is_some_and(|found| found.role == spec.role), "{place}: {differences:?}");
            // `--set` puts the value there, but for classes.
            if table.name == "hop.class" {
                continue;
            }
            let path = match table.name {
                "scenario" => spec.name.to_owned(),
                "hop" => format!("hop.b.{}", spec.name),
                "flow" => format!("flow.f.{}", spec.name),
                _ => place,
            };
            let setting = settings("--set", &format!("{path}={value}")).expect("a setting");
            let set = Scenario::parse_with(&text(&file), "file.toml", &setting, &NoTraces);
            assert_eq!(set, Ok(after), "--set {path}={value}");
        }
    }
}

#[test]
fn messages_list_every_key() {
    for table in keys::tables() {
        let file = with(&files()[0], table.name, "nonsense", "1");
        let message = parse(&text(&file)).expect_err("it is refused").message;
        let names: Vec<&str> = table.keys.iter().map(|spec| spec.name).collect();
        assert!(message.ends_with(&format!("allowed: {}", names.join(", "))), "{message}");
    }
}

#[test]
fn what_is_needed_is_asked_for() {
    for table in keys::tables() {
        for spec in table.keys.iter().filter(|spec| spec.absent == Absent::Needed && !spec.is_table) {
            let mut file = files()[0].clone();
            let (_, keys) = file.iter_mut().rfind(|(name, _)| *name == table.name).expect("every table is there");
            keys.retain(|(key, _)| *key != spec.name);
            let message = parse(&text(&file)).expect_err("it is refused").message;
            assert!(message.starts_with(&format!("no {} in [[{}]]; allowed: ", spec.name, table.name)), "{message}");
        }
    }
}

/// The book's tables of keys, in the order of the tables of the file.
#[test]
fn the_book_has_every_key() {
    const HEAD: &str = "| key | default | allowed | |";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/scenarios.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (mut right, mut tables) = (String::new(), keys::tables().into_iter());
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        right += &format!("{line}\n");
        if line == HEAD {
            right += &format!("{}\n", lines.next().expect("a line below the head"));
            while lines.next_if(|line| line.starts_with('|')).is_some() {}
            let table = tables.next().expect("as many tables as in the file");
            right.extend(table.keys.iter().filter(|spec| !spec.is_table).map(row));
        }
    }
    assert_eq!(tables.next(), None, "a table of the file is not in the book");
    if right != page && std::env::var_os("NARROWS_RECORD").is_some() {
        std::fs::write(path, right).expect("the page is written");
    } else if let Some((was, is)) = page.lines().zip(right.lines()).find(|(was, is)| was != is) {
        panic!("{was}\nshould be\n{is}\nNARROWS_RECORD=1 writes the tables");
    }
}

fn row(spec: &KeySpec) -> String {
    let default = match spec.absent {
        Absent::Default if !spec.default.is_empty() => format!("`{}`", spec.default),
        Absent::Words(words) => words.to_owned(),
        _ => spec.when_absent().to_owned(),
    };
    let allowed = match spec.unit {
        "kind" => "a name, or a table".to_owned(),
        // Their form is in the text of the page.
        "name" | "program" => format!("a {}", spec.unit),
        _ => spec.allowed.replace(" | ", ", "),
    };
    let doc = spec.doc.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("| `{}` | {default} | {allowed} | {doc} |\n", spec.name)
}
