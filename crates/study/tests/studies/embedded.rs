//! Every study that the program carries: its file is right, each of its cells is a scenario that can be run.
use narrows_study::{Level, papers, rule, studies};

#[test]
fn every_cell_of_every_study_is_a_scenario() {
    assert!(papers().contains(&"cocoa") && papers().contains(&"league"), "{:?}", papers());
    for paper in papers() {
        for study in studies(paper).unwrap_or_else(|error| panic!("{error}")) {
            for level in [Level::Quick, Level::Default, Level::Full] {
                let cells = study.cells(level).unwrap_or_else(|error| panic!("{paper}: {error}"));
                assert!(!cells.is_empty(), "{paper} {}", study.figure);
                for cell in cells {
                    cell.scenario(1).unwrap_or_else(|error| panic!("{paper} {}: {error}", study.figure));
                }
            }
        }
    }
}

#[test]
fn figures_are_named_once() {
    for paper in papers() {
        let mut names: Vec<String> = studies(paper).unwrap().into_iter().map(|study| study.figure).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{paper}");
    }
}

#[test]
fn every_paper_says_how_near_its_figures_are_to_be_met() {
    for paper in ["cocoa", "cp-aqm", "startup", "thin-streams", "tonopah"] {
        let rule =
            rule(paper).unwrap_or_else(|error| panic!("{error}")).unwrap_or_else(|| panic!("{paper} has no rule"));
        assert!(rule.words().starts_with("within 5 %, at least 1 point, 1 packet: "), "{}", rule.words());
    }
    assert_eq!(rule("league").ok().flatten(), None, "what is not published has no score");
}
